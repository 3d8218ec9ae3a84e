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

/// From a worker's I/O thread to the threads that run its calls, each of which has a number. Bound: kWorkMax; each
/// caller has at most a window of calls under way (CallWindows). What has begun goes on in the thread where it began;
/// it and what has not begun take turns: neither can keep the other waiting for ever.
class WorkQueue {
 public:
  static constexpr std::size_t kWorkMax = std::size_t{1} << 20;

  /// At most so many from here on, not fewer than before; so it begins with 1.
  void set_threads(std::size_t threads) {
    std::lock_guard lock(mutex_);
    lanes_.resize(threads);
  }
  std::size_t threads() const {
    std::lock_guard lock(mutex_);
    return lanes_.size();
  }
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
  /// In this thread. At most one for each call that has begun.
  void resume(Resumption resumption, std::size_t thread = 0) {
    {
      std::lock_guard lock(mutex_);
      lanes_[thread].resumptions.push_back(std::move(resumption));
    }
    arrived_.notify_all();
  }
  /// Of that thread itself.
  void resume_at(Instant when, Resumption resumption, std::size_t thread = 0) {
    std::lock_guard lock(mutex_);
    lanes_[thread].timers.emplace(when, std::move(resumption));
  }
  /// Whether this thread, which does nothing, has nothing to do.
  bool is_idle(std::size_t thread = 0) {
    std::lock_guard lock(mutex_);
    busy_ = false;
    return lanes_[thread].resumptions.empty() && work_.empty();
  }
  /// When this thread goes on with something by itself.
  std::optional<Instant> next_timer(std::size_t thread = 0) {
    std::lock_guard lock(mutex_);
    const auto& timers = lanes_[thread].timers;
    return timers.empty() ? std::nullopt : std::optional(timers.begin()->first);
  }
  using Next = std::variant<actors::CreateActor, actors::Call, Resumption>;
  /// Blocks until there is work for this thread.
  Next pop(std::size_t thread = 0) {
    std::unique_lock lock(mutex_);
    busy_ = false;
    Lane& lane = lanes_[thread];
    auto& timers = lane.timers;
    while (true) {
      if (!timers.empty()) {
        for (const Instant now = steady_now(); !timers.empty() && timers.begin()->first <= now;)
          lane.resumptions.push_back(std::move(timers.extract(timers.begin()).mapped()));
      }
      if (!lane.resumptions.empty() || !work_.empty()) break;
      if (timers.empty()) {
        arrived_.wait(lock);
      } else {
        arrived_.wait_for(lock, timers.begin()->first - steady_now());
      }
    }
    busy_ = true;
    began_ = steady_now();
    lane.resumed = !lane.resumptions.empty() && (work_.empty() || !lane.resumed);
    if (lane.resumed) {
      if (!work_.empty()) arrived_.notify_one();  // Who was woken for it is this one, which does something else.
      return take_front(lane.resumptions);
    }
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
    const auto* const first = work_.empty() ? nullptr : std::get_if<actors::Call>(&work_.front());
    if (first == nullptr || first->actor.value != 0) return calls;
    if (!busy_) {  // It is about to be.
      again = now + patience;
      return calls;
    }
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

  /// What is one thread's alone.
  struct Lane {
    std::deque<Resumption> resumptions;
    std::multimap<Instant, Resumption> timers;
    bool resumed = false;  ///< What it took last.
  };

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<actors::Work> work_;
  std::deque<Lane> lanes_ = std::deque<Lane>(1);  ///< They keep their places when there are more.
  bool busy_ = false;                             ///< With what was taken last,
  Instant began_{};                               ///< since then.
};

}  // namespace paceline::worker
