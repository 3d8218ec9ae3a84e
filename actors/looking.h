#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "runtime/base/instant.h"

namespace paceline::actors {

/// Whether it pays for a thread that waits to look for what comes itself for kTime, instead of sleeping at once: it
/// does while somebody answers within that time on another core. Each time that nobody did, the next looks are left
/// out, twice as many as before. Sans-I/O.
class Looking {
 public:
  static constexpr Duration kTime = std::chrono::microseconds(50);
  static constexpr std::uint32_t kLeftOutMax = 63;

  /// Whether to look this time.
  bool pays() {
    if (left_out_ == 0) return true;
    --left_out_;
    return false;
  }
  void on_looked(bool came) {
    failed_ = came ? 0 : std::min(2 * failed_ + 1, kLeftOutMax);
    left_out_ = failed_;
  }

 private:
  std::uint32_t failed_ = 0;  ///< 2^n - 1 after n failures in a row.
  std::uint32_t left_out_ = 0;
};

/// Whose turn it is with what one thread at a time may use: its owner's, which can always have it soon, or for moments
/// that of a guest.
class OwnersTurn {
 public:
  /// The owner's: waits until a guest has gone.
  std::unique_lock<std::mutex> take() {
    wanted_.store(true, std::memory_order_relaxed);
    std::unique_lock lock(mutex_);
    wanted_.store(false, std::memory_order_relaxed);
    return lock;
  }
  /// A guest's, if the owner has no use for it.
  std::unique_lock<std::mutex> borrow() {
    if (is_wanted()) return {};
    return std::unique_lock(mutex_, std::try_to_lock);
  }
  /// A guest is to go.
  bool is_wanted() const { return wanted_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  std::atomic<bool> wanted_{false};
};

}  // namespace paceline::actors
