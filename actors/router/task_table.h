#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol.h"
#include "scheduler/task_graph.h"

namespace paceline::actors {

/// A task as the router has it.
struct TaskRecord {
  Call call;
  NodeId origin;     ///< Where the owner is connected.
  std::string root;  ///< The driver on whose behalf it runs.
  int attempts = 0;  ///< Runs begun.
};

/// The task graph with what its nodes carry: calls that wait, and results that later calls may name as arguments, until
/// their owner releases them. Sans-I/O; owned by the router. Bounds: Options, TaskGraph::Options.
class TaskTable {
 public:
  struct Options {
    std::size_t kept_bytes_max = std::size_t{256} << 20;  ///< Results kept for later tasks,
    std::size_t argument_bytes_max = kArgumentBytesMax;   ///< each at most so large.
  };
  TaskTable(Options options, scheduler::TaskGraph& graph) : options_(options), graph_(graph) {}

  /// `overloaded` at the bound or if an argument's result was not kept, `invalid` for an id that exists or an argument
  /// that is unknown; the argument's error if it failed.
  Result<void> add(TaskRecord task);
  /// The first task that may run and needs at most `cpus`.
  std::optional<TaskId> next_ready(double cpus) const { return graph_.next_ready(cpus, scheduler::TaskKind::task); }
  std::size_t ready() const { return graph_.ready(); }
  /// The next ready task begins to run: its arguments are all values now.
  const TaskRecord& take(TaskId task);
  /// After the death of its worker: ready again. False if its retries are used up: it is to be finished.
  bool put_back(TaskId task);
  /// nullptr if it is unknown or over.
  const TaskRecord* find(TaskId task) const;

  struct Finished {
    TaskRecord task;
    Result<Bytes> value;
  };
  /// The task, and those that fail because it did; nothing if it is unknown or over. One that has never run ends with
  /// an error; one that was put back may end with the value of its first run.
  std::vector<Finished> finish(TaskId task, Result<Bytes> value);
  /// No later task will name it.
  void release(TaskId task);
  /// Tasks of the root that are not over, in order of id.
  std::vector<TaskId> unfinished_of(const std::string& root) const;
  void release_all_of(const std::string& root);

  std::size_t kept_bytes() const { return kept_bytes_; }
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::optional<TaskRecord> record;  ///< Until it is over.
    std::optional<Bytes> value;        ///< Kept result.
    std::string root;
    std::size_t users = 0;  ///< Waiting tasks that name it.
    bool released = false;
  };
  void drop_sources(const TaskRecord& task);
  void forget_if_unused(std::map<TaskId, Entry>::iterator entry);

  Options options_;
  scheduler::TaskGraph& graph_;      // The node's: training's compute and averaging tasks are in it, too.
  std::map<TaskId, Entry> entries_;  // Ordered: order is observable.
  std::size_t kept_bytes_ = 0;
};

}  // namespace paceline::actors
