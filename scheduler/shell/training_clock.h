#pragma once

#include <optional>

#include "runtime/base/instant.h"

namespace paceline::scheduler {

/// Time that a job trains: it stands still while everybody is held for an evaluation. Pure.
class TrainingClock {
 public:
  explicit TrainingClock(Instant begin) : begin_(begin) {}

  /// It is `at` now. It stands still if it did.
  void start(Instant now, Duration at = {}) {
    begin_ = now - at;
    held_ = {};
    if (held_since_) held_since_ = now;
  }
  void stand_still(Instant now) {
    if (!held_since_) held_since_ = now;
  }
  void go_on(Instant now) {
    if (!held_since_) return;
    held_ += now - *held_since_;
    held_since_.reset();
  }
  Duration at(Instant now) const { return (held_since_ ? *held_since_ : now) - begin_ - held_; }

 private:
  Instant begin_;
  Duration held_{};
  std::optional<Instant> held_since_;
};

}  // namespace paceline::scheduler
