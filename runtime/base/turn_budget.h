#pragma once

#include <cstddef>

#include "runtime/base/clock.h"
#include "runtime/base/instant.h"

namespace paceline {

/// What one source of messages may take of a control loop's turn, so that no flood keeps the others waiting: so many
/// messages, or so long. Made where a turn begins; reads the clock.
class TurnBudget {
 public:
  static constexpr std::size_t kMessages = 256;
  static constexpr Duration kTime = std::chrono::milliseconds(1);

  explicit TurnBudget(const Clock& clock = machine_clock(), std::size_t messages = kMessages)
      : clock_(clock), messages_(messages), begin_(clock.now()) {}

  /// Whether one more message may be handled now.
  bool take() { return taken_++ < messages_ && clock_.now() - begin_ < kTime; }

 private:
  const Clock& clock_;
  const std::size_t messages_;
  const Instant begin_;
  std::size_t taken_ = 0;
};

}  // namespace paceline
