#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "actors/protocol.h"
#include "actors/wait_observer.h"
#include "runtime/base/instant.h"

namespace paceline::actors {

class Gathering;
/// What a result keeps of a thread that waits for it among others (actors/gathering.h).
struct Waiter {
  Gathering* gathering = nullptr;
  Waiter* next = nullptr;
  Waiter** link = nullptr;  ///< What points to this; nullptr: the result does not know it.
};

/// The place where the result of one call arrives. Any thread may wait; completed once, by the client's I/O thread.
/// There may be very many: they share a few locks.
class PendingResult {
 public:
  explicit PendingResult(TaskId task, ActorId actor = {}, bool local = false)
      : task_(task), actor_(actor), local_(local) {}
  ~PendingResult() { delete value_.load(std::memory_order_relaxed); }
  PendingResult(const PendingResult&) = delete;
  PendingResult& operator=(const PendingResult&) = delete;

  TaskId task() const { return task_; }
  /// That is to give it; 0: a task does.
  ActorId actor() const { return actor_; }
  /// This process makes it itself, of what that task or call gives.
  bool local() const { return local_; }

  bool ready() const { return value_.load(std::memory_order_acquire) != nullptr; }
  /// False if it did not arrive in time.
  bool wait_for(Duration timeout) const;
  /// Blocks. The value stays, so that several may read it.
  const Result<Bytes>& wait() const;
  /// The same, as part of a longer wait; false after `timeout`.
  bool wait(ObservedWait& wait, std::optional<Duration> timeout) const;

  /// Runs `then` once, when the result is there: now, or later on the completing thread. It must not block, and cannot
  /// be withdrawn: who waits adds a Waiter instead.
  void when_ready(std::function<void()> then);
  /// Ignored (false) if it is complete already.
  bool complete(Result<Bytes> value);
  /// Holds `what` until the result comes, and no longer: the actor that is to give it.
  void hold(std::shared_ptr<const void> what);

  /// Its gathering is told, now or later, unless it is withdrawn before: within the lock, so that after withdraw() it
  /// is not told any more.
  void add(Waiter& waiter) const;
  void withdraw(Waiter& waiter) const;

 private:
  const TaskId task_;
  const ActorId actor_;
  const bool local_;
  std::atomic<const Result<Bytes>*> value_{nullptr};  ///< Apart: most of what waits has none yet.
  std::unique_ptr<std::vector<std::function<void()>>> then_;
  std::shared_ptr<const void> held_;
  mutable Waiter* waiters_ = nullptr;
};

using PendingResultPtr = std::shared_ptr<PendingResult>;

}  // namespace paceline::actors
