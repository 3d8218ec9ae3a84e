#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "actors/outbox.h"
#include "actors/protocol.h"
#include "runtime/base/instant.h"

namespace paceline::actors {

/// The place where the result of one call arrives. Any thread may wait; completed once, by the client's I/O thread.
/// When the last reference to a task's result goes, the agent is told to forget it.
class PendingResult {
 public:
  /// `keeper`: told at the end, for tasks; null for method calls, whose results agents do not keep.
  PendingResult(TaskId task, std::shared_ptr<Outbox> keeper) : task_(task), keeper_(std::move(keeper)) {}
  ~PendingResult() {
    if (keeper_) keeper_->release(task_);
  }
  PendingResult(const PendingResult&) = delete;
  PendingResult& operator=(const PendingResult&) = delete;

  TaskId task() const { return task_; }
  /// Whether an agent keeps it, so that a task can name it as an argument before it is there.
  bool is_kept_by_agent() const { return keeper_ != nullptr; }

  bool ready() const;
  /// False if it did not arrive in time.
  bool wait_for(Duration timeout) const;
  /// Blocks. The value stays, so that several may read it.
  const Result<Bytes>& wait() const;

  /// Runs `then` once, when the result is there: now, or later on the completing thread. It must not block.
  void when_ready(std::function<void()> then);
  /// Ignored if it is complete already.
  void complete(Result<Bytes> value);

 private:
  const TaskId task_;
  const std::shared_ptr<Outbox> keeper_;
  mutable std::mutex mutex_;
  mutable std::condition_variable arrived_;
  std::optional<Result<Bytes>> value_;
  std::vector<std::function<void()>> then_;
};

using PendingResultPtr = std::shared_ptr<PendingResult>;

}  // namespace paceline::actors
