#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/rounds/round_engine.h"
#include "scheduler/rounds/running_median.h"

namespace paceline::scheduler {

/// Partials that arrive for versions further ahead than this are dropped: no agent can be that far ahead.
inline constexpr std::int64_t kVersionsAhead = 1 << 20;

/// What a local worker is doing, as its agent knows it.
///
///   computing --arrival--> parked ---its version executed (fresh)----------------> computing
///       |                    | its publication came after the seal
///       |                    v
///       +--late arrival--> late --the version it missed is executed--> merging --> computing
///       any --> left --its next process is admitted--> entering --the version that it enters after is executed,
///                                                                 or it arrives-------------------------> computing
enum class Phase { computing, parked, late, merging, left, entering, passing };

struct Worker {
  Rank rank;
  Phase phase = Phase::computing;
  Version reported;  ///< Last iteration that it reported.
  Version engaged;   ///< parked: the version that it is a present member of (a join: later than `reported`).
  Version fresh_at;  ///< Last version that its publication was sealed for as fresh.
  Version executed;  ///< Last version that its group has executed.
  std::optional<Version> enters_after = {};  ///< entering: it is waited for from the next one on.
  Version without{-1};                       ///< It came in when all up to this one had begun without it;
                                             ///< passing: it waits until that is over, which may be the last one.
  bool merges = false;                       ///< A merge is under way, also of one that has left since.
  Instant word{};                            ///< When it was last heard.
  Instant alive{};                           ///< When it last gave a sign of life, computing.
};

/// It is sealed, and waited for.
inline bool takes_part(const Worker& w) { return w.phase != Phase::left && w.phase != Phase::entering; }

/// A local group of the version in flight.
struct GroupInFlight {
  enum class Stage { sealing, sealed, executing, executed };
  std::int32_t index = 0;
  Stage stage = Stage::sealing;
  std::vector<Rank> local;    ///< All members on this agent.
  std::vector<Rank> members;  ///< Of these the ones that had not left when it fired.
  std::vector<Rank> fresh;
  std::vector<Rank> stale;
  std::vector<NodeId> others;  ///< Other agents with members.
};

struct Flight {
  Version version;
  Round round;
  std::vector<GroupInFlight> groups;
};

/// Arrivals at a version that a quorum fires; times only where a grace follows the quorum.
struct Counted {
  std::int32_t arrivals = 0;
  Instant first{};
  std::optional<Instant> fires = {};  ///< There are enough: when the grace ends.
};

/// Everything a round engine knows, and its transitions. At most one version is in flight (fired, not executed); the
/// next one that is open waits for it.
struct RoundEngine::State {
  explicit State(Options o);

  Options options;
  std::vector<NodeId> agents;  ///< Those with workers of the job, in order.
  std::map<Rank, Worker> workers;
  Version done;                         ///< Last version that all local groups have executed.
  Version fired;                        ///< Highest version that some worker anywhere is known to have arrived at.
  Lateness lateness = Lateness::waits;  ///< Of the last fired round that says what late workers do.
  std::optional<Flight> flight;
  std::optional<Version>
      gate;  ///< First version after done that waits for all; nullopt: none before the next sync is executed.
  Instant gate_since{};    ///< When this agent learnt that somebody waits at the gate; valid if fired >= gate.
  Duration gate_median{};  ///< The running median at gate_since: a relative grace is fixed then.
  std::map<NodeId, Version> forwarded;
  std::map<Version, Counted> counted;  ///< Trigger quorum, on the agent that counts.
  RunningMedian spreads;               ///< The same: times from first arrivals to quorums.
  std::set<Rank> gone;                 ///< Who has left, anywhere; known where the plan asks.
  std::set<Rank> returning;            ///< Local ones that have another process, and are not admitted yet.
  std::set<NodeId> lost;               ///< Agents that give nothing but what they have given.
  Version told_to_finish;              ///< Lateness finishes: the last version whose Abandon is out.
  std::map<std::pair<Version, std::int32_t>, std::set<NodeId>> partials;
  RunningMedian steps;
  Rank missed_last{-1};  ///< Of those for whom the gate did not open.

  struct Outcome {
    bool fresh = true;
    bool averaged = false;
    std::int64_t skipped = 0;
  };

  Worker* worker(Rank rank);
  GroupInFlight* group_in_flight(Version v, std::int32_t index);
  std::optional<Version> open_version(const RoundPlan& plan) const;
  void find_gate(const RoundPlan& plan, Instant now);

  void wait_at_gate_since(Instant now);
  /// Somebody is known to have arrived at v.
  void hear(Version v, Instant now);
  /// Sends an activation on along the root's tree (from the root: starts it).
  /// Where an agent is lost, to all that are left from the root at once: what a relay was to send on may be lost.
  void forward(NodeId root, Version v, Actions& out);
  bool is_agent(NodeId node) const { return std::binary_search(agents.begin(), agents.end(), node); }
  /// The agent that counts arrivals where a quorum fires: the first that is not lost.
  NodeId counter() const;
  /// Those that `self` sends on to an activation that began at `root`.
  std::vector<NodeId> next_to_hear(NodeId root) const;
  /// Fires v, here and everywhere.
  void fire(Version v, Instant now, Actions& out);
  /// Fires the open version if its quorum's grace is over.
  void end_grace_of_quorum(const RoundPlan& plan, Instant now, Actions& out);
  /// One more arrival at a version that a quorum fires.
  void count(Version v, const RoundPlan& plan, Instant now, Actions& out);
  /// Fires v if as many have arrived as it takes.
  void fire_if_counted(Version v, const RoundPlan& plan, Instant now, Actions& out);
  /// A local worker leaves.
  void leave(Worker& w, const RoundPlan& plan, Instant now, Actions& out);
  /// Rounds that this worker would have started, others start.
  void note_gone(Rank rank, const RoundPlan& plan, Instant now, Actions& out);
  /// Admits those that have come back, as far as nothing of what they were is under way any more.
  void admit_returned(const RoundPlan& plan, Instant now, Actions& out);
  /// Nobody goes on with a model that is not the others'.
  bool models_agree(const RoundPlan& plan, Version open) const;
  /// The next average of all that nobody is known to have arrived at.
  std::optional<Version> admission(const RoundPlan& plan, Version open) const;
  /// What came back takes part from here on: it has arrived, or it is waited for.
  void come_in(Worker& w, const RoundPlan& plan, Actions& out);
  /// Its model is of a version that went on without it: it has no part in that, and goes on with the next one. (Who
  /// gives gradients takes what there is of a mean: nothing, or what all have.)
  bool pass_by(Worker& w, Version t, const RoundPlan& plan, Instant now, Actions& out);
  void go_by(Worker& w, const RoundPlan& plan, Instant now, Actions& out);
  /// Those do that enter after the version which is done now.
  void let_in(const RoundPlan& plan, Instant now, Actions& out);
  /// Whose arrival fires the round; who has left has handed it on.
  Rank initiator(const Round& round) const;
  /// The worker has arrived at an open version in time: fires it, counts, or neither.
  void announce(const Worker& w, Version t, const RoundPlan& plan, Instant now, Actions& out);
  /// Another agent counts from here on: those who wait for a quorum are announced to it.
  void announce_to_counter(const RoundPlan& plan, Instant now, Actions& out);
  void arrive(Worker& w, Version t, const RoundPlan& plan, Instant now, Actions& out);
  /// A sync is pending, and a worker that reports t < it may be a member at once (lateness skips).
  bool may_join(const Worker& w, Version t, const RoundPlan& plan) const;
  bool sealed_in_flight(Rank rank) const;
  /// It merges with the newest result that its group has.
  void merge(Worker& w, const RoundPlan& plan, Actions& out);
  /// Fires what may fire, in version order, until a version is in flight or the open one has to wait.
  /// Deadlines are looked at by tick() only: whoever arrives in the very instant of a deadline is present.
  enum class Deadlines { pass_by, look };
  void advance(const RoundPlan& plan, Instant now, Actions& out, Deadlines deadlines = Deadlines::pass_by);
  bool gate_opens(Version v, const Round& round, const RoundPlan& plan, Instant now, Deadlines deadlines, Actions& out);
  void begin(Version v, const Round& round, const RoundPlan& plan, Actions& out);
  void seal(GroupInFlight& g, const std::vector<std::optional<Version>>& contributed);
  void execute_where_complete(Actions& out);
  /// Of a lost agent only what it has given counts.
  void leave_out_lost_nodes();
  bool gives(NodeId node, Version v, std::int32_t group) const;
  bool all_executed() const;
  /// The group's result is delivered: its present members go on, those who missed it merge.
  void release_members(GroupInFlight& g, const RoundPlan& plan, Instant now, Actions& out);
  void close_version(const RoundPlan& plan, Instant now);
  void release(Worker& w, Version own, Version next, Outcome outcome, const RoundPlan& plan, Instant now, Actions& out);

  /// When those who wait for an initiator or a quorum have waited long enough; nullopt: none of them is here.
  std::optional<Instant> fires_without_at(const RoundPlan& plan) const;
  bool is_missing(Rank rank, Version v) const;
  std::vector<Rank> missing_at(Version v) const;
  std::optional<Duration> grace(const Round& round) const;
  /// With those who are `period` steps from what others wait for.
  Duration patience(std::int64_t period = 1) const;
  /// Of one that is waited for.
  Instant waited_since(const Worker& w) const;
  Instant silent_since(const Worker& w) const;
  /// When the missing member stops being waited for.
  Instant waited_until(const Worker& w, const Round& round) const;
  std::optional<Instant> next_deadline(const RoundPlan& plan) const;
  std::optional<Waiting> waiting(const RoundPlan& plan) const;
  std::string fingerprint() const;
};

}  // namespace paceline::scheduler
