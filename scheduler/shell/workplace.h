#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/byte_pool.h"
#include "runtime/base/clock.h"
#include "runtime/base/piece.h"
#include "runtime/observe/trace.h"
#include "runtime/wire/codec.h"
#include "scheduler/ledger.h"
#include "scheduler/record/chronicle.h"
#include "scheduler/rounds/round_plan.h"
#include "scheduler/shell/averagings.h"
#include "scheduler/shell/training_clock.h"
#include "scheduler/shell/worker_windows.h"
#include "scheduler/views/view.h"

namespace paceline::scheduler {

/// A training job, as the coordinators of its strategy know it on one agent.
struct JobOptions {
  JobId job;
  NodeId self;
  std::vector<NodeId> node_of;      ///< Rank -> node; size P.
  std::set<Rank> vacant;            ///< Places for workers that nobody has at the start.
  Version first{0};                 ///< First iteration (resume).
  Version last;                     ///< T-1.
  bool evaluates = false;           ///< At the end, and
  std::int64_t evaluate_every = 0;  ///< so many updates apart; 0: only at the end.
  std::string trace_path;           ///< Empty: no trace.
  std::string record_path;          ///< Where the decisions are written to; empty: nowhere.
  std::string record_head;
  /// How long others wait even for a worker that gives signs of life; nullopt: until it arrives.
  std::optional<Duration> wait_limit;
  std::optional<Chronicle::Recorded> replay;  ///< This run decides the same.
  Ledger::Options ledger;                     ///< Of the samples that are dealt.
  const Clock* clock = &machine_clock();
};

/// Bulk stays its keepers' until the node has it.
using SendToNode = std::function<void(NodeId, wire::Message&, std::vector<Piece>)>;

/// What a coordinator works with on one agent: who is in the job, its workers' windows, averagings as tasks, the
/// chronicle of what the core is told, the training clock, and words to other agents and to the job's owner. Owned by
/// the agent's control loop.
class Workplace {
 public:
  /// What the job's owner must know about.
  struct Executed {
    Version version;
    bool sync;
    bool over;  ///< The job's last version. Its workers are held, as for an evaluation, until `release`.
    bool evaluate;
    std::vector<Rank> evaluators;  ///< Of this node: who may, if this node is to; the first does.
    RoundSums sums;
  };
  struct Left {
    Rank rank;
    Version version;
    Duration silent;        ///< Since its last sign of life.
    Duration waited;        ///< For it.
    bool replayed = false;  ///< It was not silent: it left here in the run that is replayed.
  };
  /// A worker of this node that had gone may come back in (RoundEngine::Admit).
  struct Admitted {
    Rank rank;
    std::optional<Version> after;  ///< The state that it needs; nullopt: any.
    bool may_skip;
  };
  struct WentOn {  ///< Without this node; all that are left hold the same of it.
    NodeId without;
  };
  struct Failed {
    std::string text;
  };
  using Event = std::variant<Executed, Left, Admitted, WentOn, Failed>;

  struct Counters {
    std::int64_t group_averages = 0;
    std::int64_t global_averages = 0;
    std::int64_t skipped = 0;
    std::int64_t late_merges = 0;
    std::int64_t abandoned_bodies = 0;
    /// Contributions by how many versions late they were; the last: as many or more.
    std::array<std::int64_t, 17> staleness{};

    void count_staleness(std::int64_t versions) {
      const auto late = static_cast<std::size_t>(std::max<std::int64_t>(0, versions));
      ++staleness[std::min(late, staleness.size() - 1)];
    }
  };

  /// `core` is told; `owner` owns this and all that is reduced for it.
  Workplace(JobOptions options, TaskGraph& graph, collective::Averager& averager, SendToNode send,
            Chronicle::Core& core, std::function<std::shared_ptr<const void>()> owner);

  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  Instant now() const { return job.clock->now(); }

  // Words to others ---------------------------------------------------------------------------------------------------
  /// When what it may follow from is in the record.
  void send(NodeId to, wire::Message& message, Piece bulk = {});
  void tell(Event event) { events_.push_back(std::move(event)); }
  void fail_job(std::string text) { tell(Failed{std::move(text)}); }
  std::vector<Event> take_events() { return std::exchange(events_, {}); }

  // What may be wrong; then the job fails -----------------------------------------------------------------------------
  /// As WorkerWindows::begin_result.
  std::optional<memory::Buffer> begin_result(Rank rank, WorkerWindows::Member& member, Version v);
  /// Whether what another agent sent can be a model of this job. `what`: "a model".
  bool has_right_size(NodeId from, const char* what, std::size_t size) {
    return has_right_size(from, what, size, windows.bytes());
  }
  bool has_right_size(NodeId from, const char* what, std::size_t size, std::size_t expected);
  /// Whether a weight that another agent sent can be one: a number of at least 0.
  bool is_weight(NodeId from, double weight);

  // Evaluations -------------------------------------------------------------------------------------------------------
  bool evaluation_due(Version v) const;
  void note_evaluated(Version v) { evaluated_last_ = v; }
  /// Nobody starts an iteration > v until it is released; the training clock stands still.
  void hold(Version v);
  /// At the end, where nobody is held for evaluations: one of a later version may have been released, since that is
  /// a mean of how far all were, and this of how far those are that are left.
  void hold_for_good(Version v);
  /// `is_last`: after the last version training time stands still for good.
  void release(Version v, bool is_last);
  /// The last one that was.
  const std::optional<Version>& released() const { return released_; }

  // The trace ---------------------------------------------------------------------------------------------------------
  /// What the averaging that is being finished has taken.
  void trace(const char* category, Version v);
  /// A figure of this node, as it is from now on.
  void count(const char* name, double value, Instant now);
  /// Nothing follows from an averaging that still runs, the node's graph is left, files are complete.
  void close();

  Chronicle chronicle;
  const JobOptions job;  ///< The replay is the chronicle's.
  View view;
  WorkerWindows windows;
  Averagings averagings;
  BytePool pool;  ///< For what is made at every step, and may be on its way to other agents.
  TrainingClock clock;
  Ledger ledger;
  Counters counters;

 private:
  SendToNode send_;
  Version evaluated_last_;
  std::optional<Version> released_;
  std::vector<Event> events_;
  std::optional<observe::TraceWriter> trace_;
};

void add(RoundSums& to, const RoundSums& from);

}  // namespace paceline::scheduler
