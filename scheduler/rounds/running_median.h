#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "runtime/base/instant.h"

namespace paceline::scheduler {

/// Lower median of the last `kWindow` durations. Pure; O(kWindow) a question after an add().
class RunningMedian {
 public:
  static constexpr std::size_t kWindow = 20;

  void add(Duration d) {
    if (last_.size() < kWindow) {
      last_.push_back(d);
    } else {
      last_[next_] = d;
    }
    next_ = (next_ + 1) % kWindow;
    median_.reset();
  }

  /// Zero before the first.
  Duration get() const {
    if (last_.empty()) return Duration::zero();
    if (!median_) {
      std::vector<Duration> sorted = last_;
      std::sort(sorted.begin(), sorted.end());
      median_ = sorted[(sorted.size() - 1) / 2];
    }
    return *median_;
  }

 private:
  std::vector<Duration> last_;
  std::size_t next_ = 0;
  mutable std::optional<Duration> median_;  ///< If it has been asked for since the last add().
};

}  // namespace paceline::scheduler
