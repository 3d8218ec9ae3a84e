#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "runtime/base/result.h"

namespace paceline::job {

/// `--slow 3:4x,5:2x`: worker 3 always takes four times as long as it would. Slowness is made by sleeping.
struct SlowWorkers {
  std::map<std::int32_t, double> factors{};  ///< At least 1.
};

/// `--straggle 1:40ms`: in every update `count` random workers sleep `seconds` before they compute, as in the WAGMA
/// paper.
struct RandomDelay {
  std::int32_t count = 0;
  double seconds = 0;
};

/// "3:4x" or "3:4", several separated by commas. Empty text: nobody is slow. `invalid` names the part that is no such,
/// and the form.
Result<SlowWorkers> parse_slow_workers(std::string_view text);
/// Empty text: no delay. Units: us, ms, s; at most a day.
Result<RandomDelay> parse_random_delay(std::string_view text);

}  // namespace paceline::job
