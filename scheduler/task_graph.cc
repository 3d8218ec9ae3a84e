#include "scheduler/task_graph.h"

#include <algorithm>
#include <set>
#include <utility>

namespace paceline::scheduler {
namespace {

std::string name(TaskId id) { return "task " + to_string(id); }

bool over(TaskState s) { return s == TaskState::done || s == TaskState::failed || s == TaskState::cancelled; }

}  // namespace

Result<TaskState> TaskGraph::add(const Task& task) {
  if (nodes_.size() >= options_.tasks_max) {
    return fail(ErrorKind::overloaded, name(task.id) + " not added: " + std::to_string(options_.tasks_max) +
                                           " tasks are held already; get() or drop some results first");
  }
  if (task.dependencies.size() > options_.dependencies_max) {
    return fail(ErrorKind::invalid, name(task.id) + " depends on " + std::to_string(task.dependencies.size()) +
                                        " tasks; at most " + std::to_string(options_.dependencies_max) +
                                        " are allowed");
  }
  if (nodes_.contains(task.id)) return fail(ErrorKind::invalid, name(task.id) + " exists already");
  const std::set<TaskId> dependencies(task.dependencies.begin(), task.dependencies.end());
  for (TaskId d : dependencies) {
    if (!nodes_.contains(d))
      return fail(ErrorKind::invalid, name(task.id) + " depends on " + name(d) + ", which is unknown");
  }
  Node node{.kind = task.kind,
            .cpus = task.cpus,
            .state = TaskState::waiting,
            .order = added_++,
            .missing = 0,
            .dependants = {},
            .error = {}};
  for (TaskId d : dependencies) {
    Node& on = nodes_.at(d);
    if (on.error && !node.error) node.error = on.error;
    if (!over(on.state)) ++node.missing;
  }
  if (node.error) {
    node.state = TaskState::failed;
  } else {
    for (TaskId d : dependencies) {
      if (Node& on = nodes_.at(d); !over(on.state)) on.dependants.push_back(task.id);
    }
    if (node.missing == 0) {
      enqueue(task.id, node);
    }
  }
  const TaskState state = node.state;
  nodes_.emplace(task.id, std::move(node));
  return state;
}

std::optional<TaskId> TaskGraph::next_ready(double cpus, std::optional<TaskKind> kind) const {
  const std::pair<const std::uint64_t, TaskId>* first = nullptr;
  for (const auto& [need, queue] : ready_) {
    if (need.second > cpus || (kind && need.first != *kind)) continue;
    if (first == nullptr || queue.begin()->first < first->first) first = &*queue.begin();
  }
  return first == nullptr ? std::nullopt : std::optional(first->second);
}

void TaskGraph::enqueue(TaskId id, Node& node) {
  node.state = TaskState::ready;
  ready_[{node.kind, node.cpus}].emplace(node.order, id);
  ++ready_count_;
}

void TaskGraph::dequeue(const Node& node) {
  const auto queue = ready_.find({node.kind, node.cpus});
  queue->second.erase(node.order);
  if (queue->second.empty()) ready_.erase(queue);
  --ready_count_;
}

Result<TaskGraph::Node*> TaskGraph::in_state(TaskId id, TaskState state, const char* what) {
  const auto it = nodes_.find(id);
  if (it == nodes_.end()) return fail(ErrorKind::not_found, name(id) + " is unknown");
  if (it->second.state != state) return fail(ErrorKind::stale, name(id) + " is not " + what);
  return &it->second;
}

Result<void> TaskGraph::lease(TaskId id) {
  auto node = in_state(id, TaskState::ready, "ready");
  if (!node) return tl::unexpected(node.error());
  (*node)->state = TaskState::leased;
  dequeue(**node);
  return {};
}

Result<void> TaskGraph::give_back(TaskId id) {
  auto node = in_state(id, TaskState::leased, "leased");
  if (!node) return tl::unexpected(node.error());
  enqueue(id, **node);
  return {};
}

Result<TaskGraph::Changes> TaskGraph::on_done(TaskId id) {
  auto node = in_state(id, TaskState::leased, "leased");
  if (!node) return tl::unexpected(node.error());
  (*node)->state = TaskState::done;
  Changes changes;
  for (TaskId d : std::exchange((*node)->dependants, {})) {
    const auto it = nodes_.find(d);
    if (it == nodes_.end() || it->second.state != TaskState::waiting || --it->second.missing > 0) continue;
    enqueue(d, it->second);
    changes.ready.push_back(d);
  }
  std::sort(changes.ready.begin(), changes.ready.end());
  return changes;
}

Result<TaskGraph::Changes> TaskGraph::on_failed(TaskId id, Error error) {
  auto node = in_state(id, TaskState::leased, "leased");
  if (!node) return tl::unexpected(node.error());
  (*node)->state = TaskState::failed;
  (*node)->error = error;
  Changes changes;
  fail_dependants(**node, error, changes);
  return changes;
}

Result<TaskGraph::Changes> TaskGraph::cancel(TaskId id) {
  const auto it = nodes_.find(id);
  if (it == nodes_.end()) return fail(ErrorKind::not_found, name(id) + " is unknown");
  Node& node = it->second;
  if (over(node.state)) return fail(ErrorKind::stale, name(id) + " is over already");
  if (node.state == TaskState::ready) dequeue(node);
  node.state = TaskState::cancelled;
  node.error = Error{ErrorKind::cancelled, name(id) + " was cancelled"};
  Changes changes;
  fail_dependants(node, *node.error, changes);
  return changes;
}

void TaskGraph::fail_dependants(const Node& of, const Error& error, Changes& changes) {
  std::vector<TaskId> next = of.dependants;
  while (!next.empty()) {
    const TaskId id = next.back();
    next.pop_back();
    const auto it = nodes_.find(id);
    if (it == nodes_.end() || it->second.state != TaskState::waiting) continue;
    it->second.state = TaskState::failed;
    it->second.error = error;
    changes.failed.push_back(id);
    const auto dependants = std::exchange(it->second.dependants, {});
    next.insert(next.end(), dependants.begin(), dependants.end());
  }
  std::sort(changes.failed.begin(), changes.failed.end());
}

Result<void> TaskGraph::forget(TaskId id) {
  const auto it = nodes_.find(id);
  if (it == nodes_.end()) return fail(ErrorKind::not_found, name(id) + " is unknown");
  if (!over(it->second.state)) return fail(ErrorKind::stale, name(id) + " is not over yet");
  nodes_.erase(it);
  return {};
}

std::optional<TaskState> TaskGraph::state(TaskId id) const {
  const auto it = nodes_.find(id);
  return it == nodes_.end() ? std::nullopt : std::optional(it->second.state);
}

const Error* TaskGraph::error(TaskId id) const {
  const auto it = nodes_.find(id);
  return it == nodes_.end() || !it->second.error ? nullptr : &*it->second.error;
}

}  // namespace paceline::scheduler
