#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "runtime/base/instant.h"

namespace paceline::link {

/// How much bulk may be under way, so that it fills the path but what comes behind it on the same connection, such as a
/// heartbeat, does not stand in a long queue: the idea of LEDBAT (RFC 6817) and TCP Vegas. The shortest time in which
/// an acknowledgement ever came is taken for the path's own; what it takes longer is a queue.
///
/// Pure. Within one such time it grows by half while the queue is short; it shrinks to what would have made a queue of
/// half the target, but not by more than half, since a thread that had to wait for a core looks like a queue, too.
class DelayWindow {
 public:
  struct Options {
    std::size_t bytes_min = std::size_t{2} << 20;
    std::size_t bytes_max = std::size_t{8} << 20;
    Duration target = std::chrono::milliseconds(8);
  };

  explicit DelayWindow(Options options) : options_(options), bytes_(options.bytes_min) {}

  std::size_t bytes() const { return bytes_; }

  /// `acked` bytes came through, the last of them after `delay`; `was_full`: more waited for room.
  void on_acked(std::size_t acked, Duration delay, bool was_full, Instant now) {
    shortest_ = std::min(shortest_.value_or(delay), delay);
    const Duration queued = delay - *shortest_;
    if (queued > options_.target) {
      if (next_cut_ && now < *next_cut_) return;  // The last cut does not show yet.
      const double part = std::max(0.5, seconds(*shortest_ + options_.target / 2) / seconds(delay));
      bytes_ = std::max(options_.bytes_min, static_cast<std::size_t>(static_cast<double>(bytes_) * part));
      next_cut_ = now + delay;
    } else if (was_full && queued < options_.target / 2) {
      bytes_ = std::min(options_.bytes_max, bytes_ + acked / 2);
    }
  }
  /// A new connection may take another path.
  void forget_path() { shortest_.reset(); }

 private:
  Options options_;
  std::size_t bytes_;
  std::optional<Duration> shortest_;
  std::optional<Instant> next_cut_;
};

}  // namespace paceline::link
