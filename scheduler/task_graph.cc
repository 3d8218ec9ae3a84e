#include "scheduler/task_graph.h"

#include <set>
#include <string>
#include <utility>

namespace paceline::scheduler {
namespace {

std::string name(TaskId id) { return "task " + to_string(id); }

}  // namespace

Result<TaskState> TaskGraph::add(const Task& task) {
  if (nodes_.size() >= options_.tasks_max) {
    return fail(ErrorKind::overloaded,
                name(task.id) + " not added: " + std::to_string(options_.tasks_max) + " tasks are held already");
  }
  if (nodes_.contains(task.id)) return fail(ErrorKind::invalid, name(task.id) + " exists already");
  const std::set<TaskId> dependencies(task.dependencies.begin(), task.dependencies.end());
  for (const TaskId d : dependencies)
    if (!nodes_.contains(d))
      return fail(ErrorKind::invalid, name(task.id) + " depends on " + name(d) + ", which is unknown");
  Node node{.kind = task.kind, .state = TaskState::waiting, .order = added_++};
  for (const TaskId d : dependencies) {
    Node& on = nodes_.at(d);
    if (on.state == TaskState::done) continue;
    on.dependants.push_back(task.id);
    ++node.missing;
  }
  if (node.missing == 0) enqueue(task.id, node);
  const TaskState state = node.state;
  nodes_.emplace(task.id, std::move(node));
  return state;
}

std::optional<TaskId> TaskGraph::next_ready(TaskKind kind) const {
  const auto queue = ready_.find(kind);
  if (queue == ready_.end() || queue->second.empty()) return std::nullopt;
  return queue->second.begin()->second;
}

void TaskGraph::enqueue(TaskId id, Node& node) {
  node.state = TaskState::ready;
  ready_[node.kind].emplace(node.order, id);
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
  ready_[(*node)->kind].erase((*node)->order);
  return {};
}

Result<void> TaskGraph::on_done(TaskId id) {
  auto node = in_state(id, TaskState::leased, "leased");
  if (!node) return tl::unexpected(node.error());
  (*node)->state = TaskState::done;
  for (const TaskId d : std::exchange((*node)->dependants, {}))
    if (const auto it = nodes_.find(d); it != nodes_.end() && --it->second.missing == 0) enqueue(d, it->second);
  return {};
}

void TaskGraph::forget(TaskId id) {
  const auto it = nodes_.find(id);
  if (it == nodes_.end()) return;
  if (it->second.state == TaskState::ready) ready_[it->second.kind].erase(it->second.order);
  nodes_.erase(it);
}

std::optional<TaskState> TaskGraph::state(TaskId id) const {
  const auto it = nodes_.find(id);
  return it == nodes_.end() ? std::nullopt : std::optional(it->second.state);
}

}  // namespace paceline::scheduler
