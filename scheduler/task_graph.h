#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace paceline::scheduler {

/// What a node of the graph stands for. Both are scheduled alike and show up in the trace alike.
enum class TaskKind {
  compute,    ///< A worker's local period: its lease is held by one worker from the start.
  averaging,  ///< A round's reduction on the agent's threads.
};

///   waiting --all dependencies done--> ready --lease--> leased --> done
enum class TaskState { waiting, ready, leased, done };

/// Which tasks may run now. Sans-I/O. Owned by the control loop. Ready tasks are given out in the order in which they
/// were added. O(log n) a task and an edge. A finished task stays until `forget`, so that later ones can depend on it.
/// Bound: Options::tasks_max tasks.
class TaskGraph {
 public:
  struct Options {
    std::size_t tasks_max = 1 << 20;
  };
  struct Task {
    TaskId id;
    TaskKind kind;
    std::vector<TaskId> dependencies;
  };

  explicit TaskGraph(Options options) : options_(options) {}

  /// `invalid`: the id exists, or a dependency is unknown (so there are no cycles); `overloaded`: full. Returns the
  /// state that it starts in.
  Result<TaskState> add(const Task& task);

  /// The first ready task of this kind, without taking it.
  std::optional<TaskId> next_ready(TaskKind kind) const;
  /// ready -> leased. `stale` if it is not ready.
  Result<void> lease(TaskId id);
  /// leased -> done. `stale` if it is not leased.
  Result<void> on_done(TaskId id);
  /// Drops the record of a task. If it is not done, what depends on it waits until it is dropped, too.
  void forget(TaskId id);

  std::optional<TaskState> state(TaskId id) const;
  std::size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    TaskKind kind;
    TaskState state;
    std::uint64_t order;      ///< Place in the queue.
    std::size_t missing = 0;  ///< Dependencies that are not done.
    std::vector<TaskId> dependants = {};
  };

  void enqueue(TaskId id, Node& node);
  Result<Node*> in_state(TaskId id, TaskState state, const char* what);

  Options options_;
  std::unordered_map<TaskId, Node> nodes_;
  std::map<TaskKind, std::map<std::uint64_t, TaskId>> ready_;  ///< In order of addition.
  std::uint64_t added_ = 0;
};

}  // namespace paceline::scheduler
