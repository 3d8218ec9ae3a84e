#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "runtime/base/ids.h"
#include "runtime/base/instant.h"

namespace paceline::actors {

/// Told when a thread waits for a result for longer than kLongWait: a worker's thread tells its agent, who may run
/// something else meanwhile.
class WaitObserver {
 public:
  static constexpr Duration kLongWait = std::chrono::milliseconds(2);
  virtual ~WaitObserver() = default;
  virtual void waits(TaskId task) = 0;  ///< TaskId 0: not for ever. Again: for another one now.
  virtual void goes_on() = 0;
};
/// Of the calling thread; nullptr: nobody (so it begins). Not owned.
void observe_waits(WaitObserver* observer);
WaitObserver* wait_observer();

class PendingResult;
/// May bring a result itself before a thread sleeps for it. Any thread.
class ResultLooker {
 public:
  static constexpr Duration kTime = std::chrono::milliseconds(1);  ///< At most, and a little.
  virtual ~ResultLooker() = default;
  virtual bool look_for(const PendingResult& result) = 0;  ///< Whether it is there.
  virtual void wake() = 0;                                 ///< One has come otherwise: somebody may be looking for it.
  virtual void sleeps(bool begins) = 0;                    ///< A thread that looks no more; with locks.
};
/// Of this process; nullptr: nobody. Lives as long as it.
void set_result_looker(ResultLooker* looker);
/// While a thread sleeps for what the looker may bring.
class Sleeping {
 public:
  Sleeping();
  ~Sleeping();
  Sleeping(const Sleeping&) = delete;
  Sleeping& operator=(const Sleeping&) = delete;

 private:
  ResultLooker* const looker_;
};
/// Whether fork() has made this process of one that has one: no result arrives here.
bool is_copy();
/// Throws TaskError of kind `invalid` where it has.
void refuse_in_copy();

/// One wait of the calling thread, maybe for several results one after the other. Its observer hears of it if it takes
/// long, and that the thread goes on when this ends: to be declared before the locks.
class ObservedWait {
 public:
  static constexpr Duration kLongest = std::chrono::hours(24 * 365);  ///< Beyond it clocks overflow.

  ObservedWait() : observer_(wait_observer()) {}
  ~ObservedWait() {
    if (told_) observer_->goes_on();
  }
  ObservedWait(const ObservedWait&) = delete;
  ObservedWait& operator=(const ObservedWait&) = delete;

  /// Waits at `arrived` until `there()`; false after `timeout`. For `task`; 0: for whichever of several comes. What
  /// `lock` holds is given up meanwhile.
  template <class There>
  bool wait(std::unique_lock<std::mutex>& lock, std::condition_variable& arrived, std::optional<Duration> timeout,
            TaskId task, There there) {
    if (there()) return true;
    const Sleeping sleeping;
    if (timeout) timeout = std::min(*timeout, kLongest);
    const auto wait_on = [&](std::optional<Duration> at_most) {
      if (at_most) return arrived.wait_for(lock, *at_most, there);
      arrived.wait(lock, there);
      return true;
    };
    if (observer_ == nullptr || (timeout && *timeout <= WaitObserver::kLongWait)) return wait_on(timeout);
    if (wait_on(WaitObserver::kLongWait)) return true;
    if (timeout) {
      timeout = *timeout - WaitObserver::kLongWait;
      task = TaskId{};
    }
    if (!told_ || *told_ != task) {
      told_ = task;
      lock.unlock();
      observer_->waits(task);
      lock.lock();
    }
    return wait_on(timeout);
  }

 private:
  WaitObserver* const observer_;
  std::optional<TaskId> told_;
};

}  // namespace paceline::actors
