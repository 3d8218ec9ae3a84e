#pragma once

#include <chrono>

#include "runtime/base/instant.h"

namespace paceline {

/// For shells only; a core that includes this header is a defect (checked by tests/structure).
inline Instant steady_now() {
  return Instant(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

}  // namespace paceline
