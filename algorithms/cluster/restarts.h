#pragma once

#include <optional>

#include "runtime/base/instant.h"

namespace paceline::cluster {

/// When a process that has ended is started again: at once where it had lived for a while, later and later where it
/// ends as soon as it is started, and in the end not any more. Sans I/O.
class Restarts {
 public:
  static constexpr Duration kLived = std::chrono::milliseconds(150);     ///< Who lives so long has started well.
  static constexpr Duration kFirstWait = std::chrono::milliseconds(50);  ///< Doubles with each bad start in a row.
  static constexpr Duration kLongestWait = std::chrono::seconds(2);
  static constexpr int kBadStarts = 8;  ///< In a row: it is given up.

  /// It has ended, `lived` after its start: how long to wait until the next one; nullopt: never.
  std::optional<Duration> ended(Duration lived);

 private:
  int bad_ = 0;
};

}  // namespace paceline::cluster
