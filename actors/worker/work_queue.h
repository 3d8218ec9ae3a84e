#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/client.h"
#include "runtime/base/steady_now.h"

namespace paceline::worker {

/// A coroutine of an actor goes on.
struct Resumption {
  TaskId within;  ///< The call that it is of.
  std::function<void()> go_on;
};

/// From a worker's I/O thread to its compute thread. Bound: kWorkMax; each caller has at most a window of calls under
/// way (CallWindows). What has begun and what has not take turns: neither can keep the other waiting for ever.
class WorkQueue {
 public:
  static constexpr std::size_t kWorkMax = std::size_t{1} << 20;

  /// False at the bound.
  bool push(actors::Work work) {
    {
      std::lock_guard lock(mutex_);
      if (work_.size() >= kWorkMax) return false;
      work_.push_back(std::move(work));
    }
    arrived_.notify_one();
    return true;
  }
  /// At most one for each call that has begun.
  void resume(Resumption resumption) {
    {
      std::lock_guard lock(mutex_);
      resumptions_.push_back(std::move(resumption));
    }
    arrived_.notify_one();
  }
  /// Of the thread that pops.
  void resume_at(Instant when, Resumption resumption) {
    std::lock_guard lock(mutex_);
    timers_.emplace(when, std::move(resumption));
  }
  using Next = std::variant<actors::CreateActor, actors::Call, Resumption>;
  /// Blocks until there is work.
  Next pop() {
    std::unique_lock lock(mutex_);
    busy_ = false;
    while (true) {
      if (!timers_.empty()) {
        for (const Instant now = steady_now(); !timers_.empty() && timers_.begin()->first <= now;)
          resumptions_.push_back(std::move(timers_.extract(timers_.begin()).mapped()));
      }
      if (!resumptions_.empty() || !work_.empty()) break;
      if (timers_.empty()) {
        arrived_.wait(lock);
      } else {
        arrived_.wait_for(lock, timers_.begin()->first - steady_now());
      }
    }
    busy_ = true;
    began_ = steady_now();
    resumed_ = !resumptions_.empty() && (work_.empty() || !resumed_);
    if (resumed_) return take_front(resumptions_);
    return std::visit([](auto&& work) -> Next { return std::forward<decltype(work)>(work); }, take_front(work_));
  }
  /// What waits here leaves the queue.
  std::optional<actors::Call> take(TaskId task, const std::string& owner) {
    std::lock_guard lock(mutex_);
    for (auto work = work_.begin(); work != work_.end(); ++work) {
      auto* const call = std::get_if<actors::Call>(&*work);
      if (call == nullptr || call->task != task || call->owner != owner) continue;
      std::optional<actors::Call> taken(std::move(*call));
      work_.erase(work);
      return taken;
    }
    return std::nullopt;
  }
  /// Tasks that wait behind something that has run for `patience` are the owners' again. `again`: when to ask next;
  /// none while nothing waits.
  std::vector<actors::Call> take_unbegun(Instant now, Duration patience, std::optional<Instant>& again) {
    std::vector<actors::Call> calls;
    std::lock_guard lock(mutex_);
    if (work_.empty() || !busy_) return calls;
    if (now < began_ + patience) {
      again = began_ + patience;
      return calls;
    }
    std::deque<actors::Work> kept;
    for (auto& work : work_) {
      auto* const call = std::get_if<actors::Call>(&work);
      if (call != nullptr && call->actor.value == 0) {
        calls.push_back(std::move(*call));
      } else {
        kept.push_back(std::move(work));
      }
    }
    work_ = std::move(kept);
    return calls;
  }

 private:
  template <class T>
  static T take_front(std::deque<T>& queue) {
    T front = std::move(queue.front());
    queue.pop_front();
    return front;
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<actors::Work> work_;
  std::deque<Resumption> resumptions_;
  std::multimap<Instant, Resumption> timers_;
  bool resumed_ = false;  ///< What was taken last.
  bool busy_ = false;     ///< With what was taken last,
  Instant began_{};       ///< since then.
};

}  // namespace paceline::worker
