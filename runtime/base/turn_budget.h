#pragma once

#include <cstddef>

#include "runtime/base/instant.h"
#include "runtime/base/steady_now.h"

namespace paceline {

/// What one source of messages may take of a control loop's turn, so that no flood keeps the others waiting: so many
/// messages, or so long. Made where a turn begins; reads the clock.
class TurnBudget {
 public:
  static constexpr std::size_t kMessages = 256;
  static constexpr Duration kTime = std::chrono::milliseconds(1);

  /// Whether one more message may be handled now.
  bool take() { return taken_++ < kMessages && steady_now() - begin_ < kTime; }

 private:
  std::size_t taken_ = 0;
  Instant begin_ = steady_now();
};

}  // namespace paceline
