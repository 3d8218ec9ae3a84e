#pragma once

#include <cstddef>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace paceline::scheduler {

/// Which worker of this node runs which task: idle workers, and one lease a busy one. Sans-I/O, owned by the control
/// loop. Idle workers are used last in, first out (the last one is warm). O(log n) or better, but for `remove` of an
/// idle one: O(idle). Bound: Options::workers_max.
class WorkerLeases {
 public:
  explicit WorkerLeases(std::size_t workers_max) : workers_max_(workers_max) {}

  /// `overloaded` when full; `invalid` if it is known already.
  Result<void> add(WorkerId worker);
  /// The worker is gone; returns the task that it held.
  std::optional<TaskId> remove(WorkerId worker);
  /// Leases an idle worker to the task; nullopt if all are busy.
  std::optional<WorkerId> lease(TaskId task);
  /// Leases this very worker (an actor's calls run in its own process). `overloaded` if it is busy, `not_found` if
  /// unknown.
  Result<void> lease(TaskId task, WorkerId worker);
  /// The task is over: its worker is idle again, and returned. nullopt if no worker holds the task.
  std::optional<WorkerId> release(TaskId task);

  std::optional<WorkerId> worker_of(TaskId task) const;
  std::optional<TaskId> task_of(WorkerId worker) const;
  std::size_t idle() const { return idle_.size(); }
  std::size_t size() const { return workers_.size(); }

 private:
  std::size_t workers_max_;
  std::unordered_map<WorkerId, std::optional<TaskId>> workers_;
  std::unordered_map<TaskId, WorkerId> busy_;
  std::vector<WorkerId> idle_;
};

}  // namespace paceline::scheduler
