#pragma once

#include <chrono>
#include <optional>
#include <ratio>

namespace paceline {

using Duration = std::chrono::nanoseconds;

/// A point on the job's own time line. It has no now(): a core is told the time, by a shell from
/// the steady clock (see steady_now.h) or by the simulator from its virtual one.
struct InstantClock {
  using rep = std::chrono::nanoseconds::rep;
  using period = std::nano;
  using duration = Duration;
  using time_point = std::chrono::time_point<InstantClock, duration>;
  static constexpr bool is_steady = true;
};
using Instant = InstantClock::time_point;

inline constexpr double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }
/// Nearest nanosecond.
inline Duration from_seconds(double s) { return Duration(static_cast<Duration::rep>(s * 1e9 + (s < 0 ? -0.5 : 0.5))); }

/// The earlier of two deadlines; nullopt is none.
inline std::optional<Instant> earlier(std::optional<Instant> a, std::optional<Instant> b) {
  if (!a || !b) return a ? a : b;
  return *a < *b ? a : b;
}

}  // namespace paceline
