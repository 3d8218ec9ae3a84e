#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "runtime/base/result.h"

namespace paceline::train {

/// `--slow 3:4x,5:2x`: worker 3 always takes four times as long as it would. Slowness is made by sleeping.
struct SlowWorker {
  std::map<std::int32_t, double> factors;
};

/// `--straggle 1:40ms`: in every update `count` random workers sleep `seconds` before they compute, as in the WAGMA
/// paper.
struct RandomDelay {
  std::int32_t count = 0;
  double seconds = 0;
};

/// Empty text: nobody is slow. `invalid` names the text and the form.
Result<SlowWorker> parse_slow_worker(std::string_view text);
/// Empty text: no delay. Units: us, ms, s.
Result<RandomDelay> parse_random_delay(std::string_view text);

/// How long one worker has to sleep so that it behaves as `--slow` and `--straggle` say. Pure: the same (seed, update)
/// picks the same delayed workers everywhere, without a message.
class Straggler {
 public:
  Straggler(const SlowWorker& slow, RandomDelay delay, std::int32_t rank, std::int32_t workers, std::uint64_t seed);

  /// Seconds to sleep before the first body of `update` is computed.
  double before(std::int64_t update) const;
  /// Seconds to sleep after computing for `computed_s` seconds.
  double after(double computed_s) const { return (factor_ - 1) * computed_s; }
  bool is_slow() const { return factor_ > 1; }

 private:
  double factor_ = 1;
  RandomDelay delay_;
  std::int32_t rank_;
  std::int32_t workers_;
  std::uint64_t seed_;
};

}  // namespace paceline::train
