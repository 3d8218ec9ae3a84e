#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "actors/client.h"
#include "runtime/base/steady_now.h"

namespace paceline::worker {

/// From a worker's I/O thread to its compute thread. Bound: kWorkMax; each caller has at most a window of calls under
/// way (CallWindows).
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
  /// Blocks until there is work.
  actors::Work pop() {
    std::unique_lock lock(mutex_);
    busy_ = false;
    arrived_.wait(lock, [this] { return !work_.empty(); });
    auto work = std::move(work_.front());
    work_.pop_front();
    busy_ = true;
    began_ = steady_now();
    return work;
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
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<actors::Work> work_;
  bool busy_ = false;  ///< With what was taken last,
  Instant began_{};    ///< since then.
};

}  // namespace paceline::worker
