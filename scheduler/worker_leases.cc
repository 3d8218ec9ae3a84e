#include "scheduler/worker_leases.h"

#include <algorithm>

namespace paceline::scheduler {

Result<void> WorkerLeases::add(WorkerId worker) {
  if (workers_.size() >= workers_max_) {
    return fail(ErrorKind::overloaded, "worker " + to_string(worker) + " not added: this node holds " +
                                           std::to_string(workers_max_) + " workers, its limit");
  }
  if (!workers_.emplace(worker, std::nullopt).second) {
    return fail(ErrorKind::invalid, "worker " + to_string(worker) + " is known already");
  }
  idle_.push_back(worker);
  return {};
}

std::optional<TaskId> WorkerLeases::remove(WorkerId worker) {
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return std::nullopt;
  const std::optional<TaskId> task = it->second;
  if (task) {
    busy_.erase(*task);
  } else {
    idle_.erase(std::find(idle_.begin(), idle_.end(), worker));
  }
  workers_.erase(it);
  return task;
}

std::optional<WorkerId> WorkerLeases::lease(TaskId task) {
  if (idle_.empty() || busy_.contains(task)) return std::nullopt;
  const WorkerId worker = idle_.back();
  idle_.pop_back();
  workers_.at(worker) = task;
  busy_.emplace(task, worker);
  return worker;
}

Result<void> WorkerLeases::lease(TaskId task, WorkerId worker) {
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return fail(ErrorKind::not_found, "worker " + to_string(worker) + " is unknown");
  if (it->second) {
    return fail(ErrorKind::overloaded, "worker " + to_string(worker) + " is busy with task " + to_string(*it->second));
  }
  if (busy_.contains(task)) return fail(ErrorKind::invalid, "task " + to_string(task) + " has a worker already");
  idle_.erase(std::find(idle_.begin(), idle_.end(), worker));
  it->second = task;
  busy_.emplace(task, worker);
  return {};
}

std::optional<WorkerId> WorkerLeases::release(TaskId task) {
  const auto it = busy_.find(task);
  if (it == busy_.end()) return std::nullopt;
  const WorkerId worker = it->second;
  busy_.erase(it);
  workers_.at(worker).reset();
  idle_.push_back(worker);
  return worker;
}

std::optional<WorkerId> WorkerLeases::worker_of(TaskId task) const {
  const auto it = busy_.find(task);
  return it == busy_.end() ? std::nullopt : std::optional(it->second);
}

std::optional<TaskId> WorkerLeases::task_of(WorkerId worker) const {
  const auto it = workers_.find(worker);
  return it == workers_.end() ? std::nullopt : it->second;
}

}  // namespace paceline::scheduler
