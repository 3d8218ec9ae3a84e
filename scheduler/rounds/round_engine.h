#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/instant.h"
#include "runtime/base/result.h"
#include "scheduler/rounds/round_plan.h"

namespace paceline::scheduler {

/// Decides, on one agent, when each averaging of a job fires, with whose contribution, and what every local worker does
/// next. Sans-I/O and deterministic. Owned by the agent's control loop. Around it: round_coordinator.h.
///
/// A version goes, on every agent and in version order, exactly once, through
///
///   open --(trigger: arrivals, activation, grace, patience)--> fired --Seal--> sealed
///        --(Partial of every other agent of a group is here)--> Execute --> executed
///
/// Between agents: `Activate` travels along a binomial tree rooted at the agent that was first (virtual agent ranks
/// v = (agent - root) mod N, forward v -> v + 2^k for k above the received bit). For a group version it says "fire",
/// for a sync "somebody has arrived" (starts grace and patience, and lets late=skip workers join). A Partial of a
/// version implies its activation. All members of a group use the same contribution of each member because only its own
/// agent seals it, once, and the others see it only inside that agent's partial. Of an agent that is lost they have
/// agreed on its partials before they are told (views/view_change.h).
class RoundEngine {
 public:
  struct Options {
    NodeId self;
    std::vector<NodeId> node_of;  ///< Rank -> node; size P.
    Version last;                 ///< T-1: always a sync; no iteration starts once it is executed.
    Version first{0};             ///< First iteration (resume).
    Duration patience_min = std::chrono::seconds(5);
    double patience_median_steps = 10;
    /// How long even a member that gives signs of life is waited for where there is no grace; nullopt: until it
    /// arrives.
    std::optional<Duration> wait_limit = {};
    /// Under a grace: a member silent for that many median steps is not waited for (it stays a member, and contributes
    /// what it last published). 0: every sync waits its whole grace for it.
    double absent_median_steps = 10;
    /// lateness `merges`: a worker that is late for the last version still does its own iterations up to it (simulated
    /// jobs); false: it merges and ends.
    bool late_finish_their_iterations = false;
  };

  // Actions, in the order in which the shell must carry them out ------------------------------------------------------
  /// Send an activation of `version` (rooted at `root`) to agent `to`.
  struct Activate {
    NodeId to;
    NodeId root;
    Version version;
  };
  /// Tell agent `to`, which counts for this job, that one more worker has arrived at `version` (trigger quorum).
  struct Count {
    NodeId to;
    Version version;
  };
  /// Tell agent `to` that this worker has left the job, or is back (triggers initiator and quorum).
  struct Gone {
    NodeId to;
    Rank rank;
    bool back = false;
  };
  /// Pin the local members' publications now, then call on_sealed. `members`: local ranks of this group that have not
  /// left.
  struct Seal {
    Version version;
    std::int32_t group;
    std::vector<Rank> members;
  };
  /// Send this agent's partial sum of the group to `to` (every other agent with members in it).
  struct SendPartial {
    NodeId to;
    Version version;
    std::int32_t group;
  };
  /// All partials are here: reduce, write to the local members, then call on_executed.
  /// `fresh` members get the mean delivered; `stale` ones get the sum retained.
  struct Execute {
    Version version;
    std::int32_t group;
    bool sync;
    std::vector<Rank> fresh;
    std::vector<Rank> stale;
    std::vector<NodeId> others;
  };
  /// Merge the late worker's publication with its newest retained result, divisor + 1, then call on_merged.
  struct Merge {
    Rank rank;
    Version own;
    Version with;
  };
  /// Tell the worker how its iteration `own` ended and what to do next.
  struct Verdict {
    Rank rank;
    Version own;         ///< The iteration that it reported (a join: the sync's version).
    Version next;        ///< The iteration to begin now.
    Version next_round;  ///< First iteration >= next that it must report.
    bool fresh = true;   ///< False: late, merged.
    bool averaged =
        false;         ///< A result (mean, merge) is in its window's writing buffer (gradients abandoned: in latest).
    bool end = false;  ///< The last version is executed: no further iteration.
    std::int64_t skipped = 0;  ///< Iterations jumped over.
    bool lr_may_decay = true;
  };
  /// Mini-batches of updates <= version are abandoned by all local workers (raise the abandon word, wake sleepers).
  struct Abandon {
    Version version;
  };
  /// The worker gave no sign of life beyond patience while others waited for it: it counts as leaving; its node ends it
  /// and says so.
  struct Leave {
    Rank rank;
    Version version;
    Duration silent;  ///< Since its last sign of life.
    Duration waited;  ///< For it.
  };
  /// A local worker that had left and has another process may have its window and the state of a worker that takes
  /// part.
  struct Admit {
    Rank rank;
    /// Its state is to be another's after this version, with which nobody has gone on yet, and it begins with the next:
    /// from there on it is waited for. nullopt: whatever state can be had; nobody waits for it before it arrives.
    std::optional<Version> after;
    bool may_skip;  ///< It may begin with whatever iteration is current then.
  };
  using Action = std::variant<Activate, Count, Gone, Seal, SendPartial, Execute, Merge, Verdict, Abandon, Leave, Admit>;
  using Actions = std::vector<Action>;

  RoundEngine(Options options, std::unique_ptr<RoundPlan> plan);
  /// The same engine in the same state that asks `plan`, whose state must equal that of other.plan() (explorer).
  RoundEngine(const RoundEngine& other, std::unique_ptr<RoundPlan> plan);
  RoundEngine(RoundEngine&&) noexcept;
  RoundEngine& operator=(RoundEngine&&) noexcept;
  ~RoundEngine();

  /// A local worker has published iteration t (all its mini-batches) and waits for its verdict.
  /// `compute`: time that the iteration took without waiting (feeds the running median); zero: on_step has been told.
  Actions on_arrival(Rank rank, Version t, Duration compute, Instant now);
  /// Feeds the running median before the arrivals of the same instant.
  void on_step(Duration compute);
  Actions on_activation(NodeId root, NodeId from, Version v, Instant now);
  /// Another agent's worker has arrived at v; only the agent that counts hears of it.
  Actions on_count(Version v, Instant now);
  /// Another agent's worker has left.
  Actions on_gone_elsewhere(Rank rank, Instant now);
  /// Another agent's worker takes part again.
  void on_back_elsewhere(Rank rank);
  /// A local worker that has left has another process, which has shared its model: Admit says when it may come in.
  /// Again, where what it was to begin with cannot be had.
  Actions on_return(Rank rank, Instant now);
  /// Another agent is lost, and those that are left have all been told of the same partials of it: they count, and
  /// what it has not given is waited for no longer. Not agent 0, which counts.
  Actions on_node_gone(NodeId node, Instant now);
  /// `present` of the group's members on `from` contributed.
  Actions on_partial(NodeId from, Version v, std::int32_t group, Instant now);
  /// Answer to Seal. `contributed[i]` is the iteration that members[i]'s sealed publication belongs to; nullopt: it has
  /// none.
  Actions on_sealed(Version v, std::int32_t group, const std::vector<std::optional<Version>>& contributed, Instant now);
  Actions on_executed(Version v, std::int32_t group, const RoundSums& sums, Instant now);
  Actions on_merged(Rank rank, Instant now);
  /// The worker has given a sign of life: its silence begins anew.
  void on_alive(Rank rank, Instant now);
  /// The worker's process has ended: it leaves at once (nothing is due to it any more).
  Actions on_gone(Rank rank, Instant now);
  /// The job ends at v, a sync that is executed or about to be, instead of at Options::last.
  void end_at(Version v);
  /// Looks at the deadlines (grace, patience), which nothing else does: call it after the arrivals of that instant.
  Actions tick(Instant now);
  /// When to call tick(); in the past if at once.
  std::optional<Instant> next_deadline() const;

  /// For `status`: who is waited for at the oldest open version; empty if nobody waits.
  struct Waiting {
    Version version;
    std::vector<Rank> arrived;
    std::vector<Rank> missing;
    Instant since;
  };
  std::optional<Waiting> waiting() const;
  /// The local worker has left, and neither a seal nor a merge needs what it published.
  bool is_free(Rank rank) const;
  /// This local worker has left, and has not come back.
  bool has_left(Rank rank) const;
  /// It has another process that is not admitted yet.
  bool is_returning(Rank rank) const;
  /// Somebody is known to be at an open version that is later than t.
  bool is_awaited_after(Version t) const;
  Version done() const;
  Version last() const;
  const RoundPlan& plan() const { return *plan_; }
  /// Running median of the last 20 steps of all local workers, waiting excluded; zero before the first.
  Duration median_step() const;
  /// Equal for engines that will answer alike, plans apart. For tests that walk states.
  std::string fingerprint() const;

 private:
  struct State;
  std::unique_ptr<RoundPlan> plan_;
  std::unique_ptr<State> state_;
};

}  // namespace paceline::scheduler
