#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace paceline::scheduler {

/// What a node of the graph stands for. All three are scheduled alike and show up in the trace alike.
enum class TaskKind {
  compute,    ///< A worker's local period: its lease is held by one worker from the start.
  averaging,  ///< A round's reduction on the agent's threads.
  task,       ///< A user's function or actor call.
};

///   waiting --all dependencies done--> ready --lease--> leased --> done
///      |                                 |                 +-----> failed --+
///      +--- a dependency failed ---------+--------- cancel --> cancelled    |
///      +<-------------------------------------------------------------------+ (dependants fail with its text)
enum class TaskState { waiting, ready, leased, done, failed, cancelled };

/// Which tasks may run now. Sans-I/O. Owned by the control loop. Ready tasks are given out in the order in which they
/// were added. O(log n) a task and an edge (and in the number of different needs for cores). A finished task stays
/// until `forget`, so that later ones can depend on it. Bound: Options::tasks_max tasks, Options::dependencies_max
/// dependencies a task.
class TaskGraph {
 public:
  struct Options {
    std::size_t tasks_max = 1 << 20;
    std::size_t dependencies_max = 1 << 16;
  };
  struct Task {
    TaskId id;
    TaskKind kind = TaskKind::task;
    std::vector<TaskId> dependencies;
    double cpus = 1;  ///< 0: needs no worker's core (averaging runs on the agent's threads).
  };
  /// What became of tasks by one event, in order of id; the event's own task is not among them.
  struct Changes {
    std::vector<TaskId> ready;
    std::vector<TaskId> failed;  ///< Dependants; why: error(id).
  };

  explicit TaskGraph(Options options) : options_(options) {}

  /// `invalid`: the id exists, or a dependency is unknown (so there are no cycles); `overloaded`: full. A task with a
  /// failed or cancelled dependency fails at once. Returns the state that it starts in.
  Result<TaskState> add(const Task& task);

  /// The first ready task whose kind is `kind` and that needs at most `cpus`, without taking it.
  std::optional<TaskId> next_ready(double cpus, std::optional<TaskKind> kind = std::nullopt) const;
  /// ready -> leased. `stale` if it is not ready.
  Result<void> lease(TaskId id);
  /// leased -> ready again, at its old place in the queue (its worker died, and it may be retried). `stale` if it is
  /// not leased.
  Result<void> give_back(TaskId id);
  /// leased -> done. `stale` if it is not leased.
  Result<Changes> on_done(TaskId id);
  /// leased -> failed; its dependants fail with the same text, transitively. `stale` if it is not leased.
  Result<Changes> on_failed(TaskId id, Error error);
  /// waiting, ready or leased -> cancelled; its dependants fail. `stale` if it is over already.
  Result<Changes> cancel(TaskId id);
  /// Drops the record of a task that is over. `stale` if it is not.
  Result<void> forget(TaskId id);

  std::optional<TaskState> state(TaskId id) const;
  /// Why it failed or was cancelled; nullptr otherwise.
  const Error* error(TaskId id) const;
  std::size_t size() const { return nodes_.size(); }
  std::size_t ready() const { return ready_count_; }

 private:
  struct Node {
    TaskKind kind;
    double cpus;
    TaskState state;
    std::uint64_t order;      ///< Place in the queue.
    std::size_t missing = 0;  ///< Dependencies that are not done.
    std::vector<TaskId> dependants;
    std::optional<Error> error;
  };

  void enqueue(TaskId id, Node& node);
  void dequeue(const Node& node);
  Result<Node*> in_state(TaskId id, TaskState state, const char* what);
  void fail_dependants(const Node& of, const Error& error, Changes& changes);

  Options options_;
  std::unordered_map<TaskId, Node> nodes_;
  /// By what a task needs, then in order of addition: there are few kinds of need.
  std::map<std::pair<TaskKind, double>, std::map<std::uint64_t, TaskId>> ready_;
  std::size_t ready_count_ = 0;
  std::uint64_t added_ = 0;
};

}  // namespace paceline::scheduler
