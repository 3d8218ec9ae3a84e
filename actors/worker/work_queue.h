#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "actors/client.h"

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
    arrived_.wait(lock, [this] { return !work_.empty(); });
    auto work = std::move(work_.front());
    work_.pop_front();
    return work;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<actors::Work> work_;
};

}  // namespace paceline::worker
