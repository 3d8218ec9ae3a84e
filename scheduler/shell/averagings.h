#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/ids.h"
#include "runtime/collective/averager.h"
#include "scheduler/record/decision.h"
#include "scheduler/task_graph.h"

namespace paceline::scheduler {

/// A job's averagings on one agent. They are tasks of the node's graph, which run one after the other on its averaging
/// threads: each begins when the one before it has delivered, and the compute tasks of those that gave to it are done.
/// Owned by the agent's control loop.
class Averagings {
 public:
  /// `prepare` says what to reduce when its turn has come (nothing: no outputs), `finish` what follows.
  struct Averaging {
    std::function<collective::Reduction()> prepare;
    std::function<void(Instant)> finish;
    std::optional<Decision> told = {};  ///< What `finish` will decide.
  };
  struct Hooks {
    /// Owns this, and all memory that is reduced but what the averaging itself holds.
    std::function<std::shared_ptr<const void>()> owner;
    /// Whether one that will decide this may finish (in a replay it has its turn).
    std::function<bool(const Decision&)> may_finish;
    std::function<void(std::string)> fail;
  };

  Averagings(JobId job, TaskGraph& graph, collective::Averager& averager, const Clock& clock, Hooks hooks);

  /// The worker has its lease: its compute task depends on nothing, and runs from the start.
  void begin_compute(Rank rank);
  void end_compute(Rank rank);
  void add(Averaging averaging, const std::vector<Rank>& contributors);
  /// What is next in the queue, and so on while they are small. Called while one finishes it does nothing: the next one
  /// follows.
  void start(Instant now);
  /// One that was submitted as `id` is done; false: it is not ours.
  bool on_reduced(std::uint64_t id, Instant now);
  /// One that is reduced and had to wait finishes, if it may now; false: there is none.
  bool finish_what_waited(Instant now);
  /// Nothing follows from what still runs, and the node's graph is left. What is being reduced stays until it is done.
  void leave();

  /// Of the one that is being finished.
  Instant began() const { return began_; }
  /// The same one's, for people.
  std::uint64_t number() const { return in_flight_.value & 0xff'ffff'ffff; }

 private:
  TaskId new_task_id();
  bool must_wait();
  void finish(Instant now);

  JobId job_;
  TaskGraph& graph_;
  collective::Averager& averager_;
  const Clock& clock_;
  Hooks hooks_;
  std::map<TaskId, Averaging> open_;             // Those that are not done.
  std::map<TaskId, Averaging>::node_type left_;  // The one that was being reduced when this left.
  std::map<Rank, TaskId> computing_;  // The compute task that a worker has leased, or had when it last arrived.
  std::uint64_t next_task_ = 0;
  TaskId last_{0};
  TaskId in_flight_{0};
  bool running_ = false;  // The one in flight is being reduced, or finishes.
  bool reduced_ = false;  // It is reduced, and waits for its turn to finish.
  Instant began_{};
};

}  // namespace paceline::scheduler
