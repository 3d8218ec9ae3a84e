#pragma once

#include <algorithm>
#include <optional>

#include "runtime/base/instant.h"

namespace paceline::actors {

/// Of two: a duration from now, and an instant.
inline std::optional<Duration> how_soon(std::optional<Duration> one, std::optional<Instant> other, Instant now) {
  if (!other) return one;
  const Duration left = std::max(*other - now, Duration::zero());
  return one ? std::min(*one, left) : left;
}

}  // namespace paceline::actors
