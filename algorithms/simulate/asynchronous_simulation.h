#pragma once

#include <functional>
#include <optional>

#include "algorithms/simulate/world.h"

namespace paceline::simulate {

/// What an asynchronous strategy says: workers meet one by one, nobody waits for an average.
struct AsynchronousRules {
  /// Whom the worker averages with when it has done this step; empty: gradients go to a server.
  std::function<std::optional<Rank>(Rank, Version)> partner = {};
  std::optional<std::int64_t> bound;  ///< Server: how many iterations a worker may be ahead of the slowest.
  algorithms::Server::Scale scale = algorithms::Server::Scale::one;
};

/// Simulates a parameter server that takes gradients as they come, or pairs that average (AD-PSGD). At one instant
/// workers that end a step are served one by one, by rank.
Outcome simulate_asynchronous(const World& world, const Learner& learner, const AsynchronousRules& rules);

}  // namespace paceline::simulate
