#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/instant.h"
#include "scheduler/rounds/running_median.h"
#include "scheduler/rounds/weighing.h"

namespace paceline::scheduler {

/// Decides, on one agent, when a local worker's batch of mini-batches is over and what its own step weighs, where
/// models of neighbours are mixed after it (docs/strategies/nonblocking.md). Sans-I/O and deterministic.
///
/// The first worker anywhere that completes its N mini-batches of update v ends v for all: the signal. Everybody goes
/// through all updates in order, so that nobody completes v + 1 before v is signalled, and the highest signalled update
/// says all. Who is behind when a signal comes (neighbours can be apart) has nothing to do in what it ends.
///
///   computing --on_done--> settled: may step (n > 0), or is stood in for (n = 0: its model mixes as it is)
///       ^                     |
///       +------ on_begun -----+ mixed
///
/// Who does not answer a signal within its grace, or has nothing to lose, is passed over: it is stood in for, and goes
/// on with the update that is current when it reports.
class BatchEngine {
 public:
  /// The readings of weighing.h.
  enum class Weight {
    share,          ///< b
    share_squared,  ///< a
    of_all,         ///< d; nobody steps before it is known what all have done.
  };
  struct Options {
    NodeId self;
    std::vector<NodeId> node_of;  ///< Rank -> node; size P.
    std::int32_t batches = 1;     ///< N
    bool drops = true;            ///< What is under way at the signal is lost; else it counts.
    Weight weight = Weight::share;
  };

  // Actions -----------------------------------------------------------------------------------------------------------
  /// Workers of this agent look at it between mini-batches.
  struct Signal {
    Version version;
  };
  /// To another agent that has a worker left: the update is over; with `bodies`, what all workers here did of it.
  struct Tell {
    NodeId to;
    Version version;
    std::optional<std::int64_t> bodies;
  };
  /// The local worker steps with `scale` times its sum.
  struct Step {
    Rank rank;
    Version version;
    std::int32_t bodies;
    double scale;
  };
  /// The local worker's model takes part in the update's mixing as it is.
  struct StandIn {
    Rank rank;
    Version version;
  };
  using Action = std::variant<Signal, Tell, Step, StandIn>;
  using Actions = std::vector<Action>;

  explicit BatchEngine(Options options);

  /// The local worker, or who stands in for it, is at v now.
  void on_begun(Rank rank, Version v, Instant now);
  /// Its mini-batches took so long each.
  void on_pace(Rank rank, Duration each);
  /// `bodies` of its mini-batches of v count, and no more.
  Actions on_done(Rank rank, Version v, std::int32_t bodies, Instant now);
  /// Another agent's.
  Actions on_signal(Version v, Instant now);
  Actions on_counts(NodeId from, Version v, std::int64_t bodies);
  /// A worker, here or elsewhere, is gone.
  Actions on_gone(Rank rank);

  bool is_over(Version v) const { return over_ && v <= *over_; }
  std::optional<Version> last_over() const { return over_; }
  /// Who begins v now does nothing of it.
  bool is_too_late_for(Version v) const { return options_.drops && is_over(v); }
  /// The update that the worker computes, nullopt: what it did is settled.
  std::optional<Version> computing(Rank rank) const;
  /// A local worker that has not answered a signal of its update.
  struct Unanswered {
    Rank rank;
    Version version;
    Instant until;  ///< Then its grace is over.
  };
  std::vector<Unanswered> unanswered() const;
  std::optional<Instant> next_deadline() const;
  /// A local worker whose answer all others need before they step: of an update that is over, where what is under way
  /// at the signal counts, and weighs the steps of all.
  struct Awaited {
    Rank rank;
    Version version;
    Instant since;  ///< It could have reacted from then on.
  };
  std::vector<Awaited> awaited() const;
  /// Equal for those that will answer alike. For tests that walk states.
  std::string fingerprint() const;

 private:
  struct Worker {
    Version update{-1};
    bool computing = false;
    Instant since{};  ///< It could have reacted from then on.
    RunningMedian pace;
  };
  /// What was done of an update, where that decides the weights.
  struct Tally {
    std::map<Rank, std::int32_t> here;
    std::optional<std::int64_t> total;  ///< Of all here: told to the others.
    std::map<NodeId, std::int64_t> elsewhere;
  };

  Actions signal(Version v, Instant now);
  Actions look_at(Version v);
  Step step(Rank rank, Version v, std::int32_t bodies, std::int64_t bodies_of_all) const;
  std::set<NodeId> others() const;

  Options options_;
  Weighing weighing_;
  std::optional<Version> over_;
  std::map<Rank, Worker> workers_;
  std::map<Version, Tally> tallies_;
  std::optional<Version> weighed_;  ///< The last update of which all counts were known.
  std::set<Rank> gone_;
  RunningMedian pace_;  ///< Of all here.
};

}  // namespace paceline::scheduler
