#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/ids.h"

namespace paceline::scheduler {

/// Stale synchronous parallel: who may begin its next iteration. A worker that has done c iterations may begin another
/// one while no worker is more than `bound` behind it; 0: rounds. Sans-I/O; ranks that are let go come in order.
class ClockBound {
 public:
  ClockBound(std::int32_t workers, std::optional<std::int64_t> bound)
      : bound_(bound),
        clocks_(static_cast<std::size_t>(workers), 0),
        waits_(static_cast<std::size_t>(workers), false) {}

  /// The worker has done one more iteration and would begin the next. Returns all who may begin theirs now.
  std::vector<Rank> on_done(Rank rank) {
    const auto i = static_cast<std::size_t>(rank.value);
    ++clocks_[i];
    waits_[i] = true;
    return let_go();
  }
  /// The worker has done so many iterations, and is in its next one.
  void resume(Rank rank, std::int64_t done) { clocks_[static_cast<std::size_t>(rank.value)] = done; }
  /// The worker, whose last iteration is counted, would begin the next. Returns all who may begin theirs now.
  std::vector<Rank> on_back(Rank rank) {
    waits_[static_cast<std::size_t>(rank.value)] = true;
    return let_go();
  }
  /// The worker does no further iteration: nobody waits for it.
  std::vector<Rank> on_gone(Rank rank) {
    const auto i = static_cast<std::size_t>(rank.value);
    waits_[i] = false;
    clocks_[i] = INT64_MAX;
    return let_go();
  }
  /// Those that have done the fewest iterations, without those that have done all or are gone.
  std::vector<Rank> slowest() const {
    std::vector<Rank> ranks;
    const std::int64_t least = *std::min_element(clocks_.begin(), clocks_.end());
    for (std::size_t i = 0; i < clocks_.size(); ++i)
      if (clocks_[i] == least && least != INT64_MAX) ranks.push_back(Rank{static_cast<std::int32_t>(i)});
    return ranks;
  }
  /// Equal for those that will answer alike. For tests that walk states.
  std::string fingerprint() const {
    std::string text;
    for (std::size_t i = 0; i < clocks_.size(); ++i) text += std::to_string(clocks_[i]) + (waits_[i] ? "w" : " ");
    return text;
  }

 private:
  std::vector<Rank> let_go() {
    std::vector<Rank> free;
    const std::int64_t slowest = *std::min_element(clocks_.begin(), clocks_.end());
    for (std::size_t i = 0; i < clocks_.size(); ++i) {
      if (!waits_[i] || (bound_ && clocks_[i] - slowest > *bound_)) continue;
      waits_[i] = false;
      free.push_back(Rank{static_cast<std::int32_t>(i)});
    }
    return free;
  }

  std::optional<std::int64_t> bound_;
  std::vector<std::int64_t> clocks_;
  std::vector<bool> waits_;
};

}  // namespace paceline::scheduler
