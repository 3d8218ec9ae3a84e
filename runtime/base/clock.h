#pragma once

#include "runtime/base/instant.h"

namespace paceline {

/// What time it is, for shells that run in processes and in the simulator. Any thread.
class Clock {
 public:
  virtual Instant now() const = 0;

 protected:
  ~Clock() = default;
};

/// steady_now().
const Clock& machine_clock();

}  // namespace paceline
