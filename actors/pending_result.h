#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "actors/protocol.h"
#include "runtime/base/instant.h"

namespace paceline::actors {

/// Told when a thread waits for a result for longer than kLongWait: a worker's thread tells its agent, who may run
/// something else meanwhile.
class WaitObserver {
 public:
  static constexpr Duration kLongWait = std::chrono::milliseconds(2);
  virtual ~WaitObserver() = default;
  virtual void waits(TaskId task) = 0;  ///< TaskId 0: not for ever.
  virtual void goes_on() = 0;
};
/// Of the calling thread; nullptr: nobody (so it begins). Not owned.
void observe_waits(WaitObserver* observer);

/// The place where the result of one call arrives. Any thread may wait; completed once, by the client's I/O thread.
/// There may be very many: they share a few locks.
class PendingResult {
 public:
  explicit PendingResult(TaskId task) : task_(task) {}
  PendingResult(const PendingResult&) = delete;
  PendingResult& operator=(const PendingResult&) = delete;

  TaskId task() const { return task_; }

  bool ready() const;
  /// False if it did not arrive in time.
  bool wait_for(Duration timeout) const;
  /// Blocks. The value stays, so that several may read it.
  const Result<Bytes>& wait() const;

  /// Runs `then` once, when the result is there: now, or later on the completing thread. It must not block.
  void when_ready(std::function<void()> then);
  /// Ignored if it is complete already.
  void complete(Result<Bytes> value);
  /// Holds `what` until the result is there, and no longer: the actor that is to give it.
  void hold(std::shared_ptr<const void> what);

 private:
  bool wait(std::unique_lock<std::mutex>& lock, std::optional<Duration> timeout) const;

  const TaskId task_;
  std::unique_ptr<const Result<Bytes>> value_;  ///< Apart: most of what waits has none yet.
  std::unique_ptr<std::vector<std::function<void()>>> then_;
  std::shared_ptr<const void> held_;
};

using PendingResultPtr = std::shared_ptr<PendingResult>;

}  // namespace paceline::actors
