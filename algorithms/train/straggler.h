#pragma once

#include <cstdint>

#include "algorithms/job/made_delays.h"

namespace paceline::train {

/// How long one worker has to sleep so that it behaves as `--slow` and `--straggle` say. Pure: the same (seed, update)
/// picks the same delayed workers everywhere, without a message.
class Straggler {
 public:
  Straggler(const job::SlowWorkers& slow, job::RandomDelay delay, std::int32_t rank, std::int32_t workers,
            std::uint64_t seed);

  /// Seconds to sleep before the first body of `update` is computed.
  double before(std::int64_t update) const;
  /// Seconds to sleep after computing for `computed_s` seconds.
  double after(double computed_s) const { return (factor_ - 1) * computed_s; }
  bool is_slow() const { return factor_ > 1; }

 private:
  double factor_ = 1;
  job::RandomDelay delay_;
  std::int32_t rank_;
  std::int32_t workers_;
  std::uint64_t seed_;
};

}  // namespace paceline::train
