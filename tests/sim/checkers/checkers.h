#pragma once

#include <string>
#include <vector>

#include "algorithms/simulate/world.h"

/// Each looks at nothing but the log of what happened, and says in one line what is wrong with it first; empty:
/// nothing.
namespace paceline::sim {

using Events = std::vector<simulate::Event>;

struct Expected {
  std::vector<NodeId> node_of;
  /// Groups of each version 0..last; empty: nothing is averaged after it.
  std::vector<std::vector<std::vector<Rank>>> groups;
  std::vector<bool> sync;             ///< By version.
  std::int64_t tau = 1;               ///< Versions from sync to sync.
  bool merges = true;                 ///< Late workers merge and do all their own iterations.
  Duration delay_max{};               ///< The longest that messages of one round can take.
  bool faults = false;                ///< Workers died or were stopped.
  bool everybody_contributes = true;  ///< False: who has finished nothing of an update has no part in it.
};

/// Every version executed exactly once, in order, by every agent for each of its groups.
std::string check_exactly_once(const Events& events, const Expected& expected);
/// All agents of a group used the same contribution of each member, namely the one that its own agent had sealed.
std::string check_same_contributions(const Events& events, const Expected& expected);
/// Where all members were fresh, the mean over all groups of a version is the mean over what went in, and all agents
/// hold the same one.
std::string check_mass(const Events& events, const Expected& expected);
/// Contributions are at most tau - 1 versions old, and current at a sync (late ones merge, no faults, no grace).
std::string check_lag(const Events& events, const Expected& expected);
/// Nobody is kept waiting for a late worker except at a sync: elsewhere a verdict takes at most the messages' time.
std::string check_nobody_waits(const Events& events, const Expected& expected);
/// Every worker that is alive ends, after the last version.
std::string check_termination(const Events& events, const Expected& expected);

/// All of them.
std::vector<std::string> check_all(const Events& events, const Expected& expected);

}  // namespace paceline::sim
