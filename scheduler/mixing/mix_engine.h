#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/ids.h"
#include "scheduler/mixing/mix_plan.h"

namespace paceline::scheduler {

/// Decides, on one agent, when each local worker's mixing can be done where everybody waits for its own neighbours
/// only, and workers may thus be at different versions. Sans-I/O and deterministic. (Averagings of whole groups:
/// rounds/round_engine.h.)
///
/// Worker j contributes version v once, in order; a row of version v is mixed when its worker wants it and all its
/// shares are here. A contribution is kept until everybody here who takes from it has mixed. How far a worker can be
/// ahead of another is bounded by the way between them in the graph.
class MixEngine {
 public:
  struct Options {
    NodeId self;
    std::vector<NodeId> node_of;  ///< Rank -> node; size P.
    /// Push-sum: what one that is gone would have been sent stays with the sender, so that columns still add up to 1.
    /// Else rows do: a worker's own share stands in for those of the gone.
    bool columns_add_up = false;
  };

  // Actions, in the order in which the shell must carry them out ------------------------------------------------------
  /// Send the local worker's contribution to another agent, on which somebody takes from it.
  struct Send {
    NodeId to;
    Rank rank;
    Version version;
  };
  /// All shares are here: mix them for this local worker, then call on_mixed.
  struct Mix {
    Rank rank;
    Version version;
    std::vector<Share> row;
  };
  /// Nobody here takes from this contribution any more.
  struct Release {
    Rank rank;
    Version version;
  };
  using Action = std::variant<Send, Mix, Release>;
  using Actions = std::vector<Action>;

  /// Plans are immutable: engines of one process may share theirs.
  MixEngine(Options options, std::shared_ptr<const MixPlan> plan);

  /// A local worker has contributed, or another agent's contribution has come. What came before is ignored.
  Actions on_contribution(Rank from, Version v);
  /// The local worker waits for its mixing of v; it has contributed to v, or does so at once.
  Actions on_wanted(Rank rank, Version v);
  /// It waits no longer, and will ask again.
  void on_not_wanted(Rank rank) { wanted_.erase(rank); }
  Actions on_mixed(Rank rank, Version v);
  /// The worker, here or elsewhere, contributes nothing after `contributed` and mixes nothing after `mixed`: others mix
  /// without it.
  Actions on_gone(Rank rank, Version contributed, Version mixed);
  /// One that is gone takes part again, after `last`, as all agree: from the next version on nobody has contributed
  /// anything. That it had gone may be heard later, and that it is gone again sooner.
  Actions on_back(Rank rank, Version last);
  /// The same as on_gone of a worker of another agent that is lost: what has come of it is all that it has contributed.
  Actions on_lost(Rank rank);
  /// After `last`, for which nobody has contributed anything yet, `plan` holds.
  void remake(Version last, std::shared_ptr<const MixPlan> plan);
  /// The last version that anybody has contributed to, as far as it is known here.
  Version furthest() const;
  /// Who is not gone.
  std::vector<Rank> left() const;
  /// Its contribution to v has come, or a later one.
  bool has_contributed(Rank rank, Version v) const;

  /// The plan's row without those that are gone.
  std::vector<Share> row(Rank to, Version v) const;
  /// Whether a mixing that is wanted now would be done at once.
  bool ready(Rank rank, Version v) const;
  /// Somebody whose contribution the local worker waits for; nullopt: it waits for nobody.
  std::optional<Rank> missing(Rank rank) const;
  const MixPlan& plan(Version v) const { return *std::prev(plans_.upper_bound(v))->second; }
  /// Those that, in `versions` versions from v on and after the last of all that are gone, give to somebody from whom
  /// nothing comes back to them, not even by others, since some are gone: of what they have every version takes a part.
  /// By rank; O(versions * workers).
  std::vector<Rank> running_dry(Version v, std::int64_t versions) const;
  /// Equal for those that will answer alike, their plans being the same. For tests that walk states.
  std::string fingerprint() const;

 private:
  struct Key {
    Version version;
    Rank rank;
    auto operator<=>(const Key&) const = default;
  };

  bool is_local(Rank rank) const { return options_.node_of[static_cast<std::size_t>(rank.value)] == options_.self; }
  std::vector<Rank> receivers(Rank from, Version v) const;
  bool is_gone(Rank rank) const;
  Version back_after(Rank rank, Version contributed) const;
  bool gives(Rank rank, Version v) const;
  bool takes(Rank rank, Version v) const;
  std::vector<Rank> readers_of(Rank from, Version v) const;
  void mix_if_ready(Rank rank, Actions& out);
  void mix_what_is_ready(Actions& out);

  Options options_;
  std::map<Version, std::shared_ptr<const MixPlan>> plans_;  ///< By the first version that each holds for.
  std::map<Key, std::int32_t> held_;  ///< Contributions, with how many local rows are still to take from them.
  std::map<Rank, Version> contributed_;
  struct Wanted {
    Version version;
    std::optional<Rank> missing = {};  ///< A share that was not here when we last looked.
  };
  std::map<Rank, Wanted> wanted_;
  /// After these versions it gave and took nothing, until with the one after `until` it did again.
  struct Absence {
    Version contributed, mixed;
    Version until{INT64_MAX};
  };
  std::map<Rank, std::vector<Absence>> gone_;
  std::map<Rank, std::vector<Version>> back_;  ///< After which versions somebody took part again.
  std::map<Rank, Absence> gone_again_;         ///< Before it was heard of here that they are back.
};

}  // namespace paceline::scheduler
