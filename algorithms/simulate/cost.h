#pragma once

#include <cstdint>

#include "algorithms/simulate/job.h"
#include "runtime/base/result.h"

namespace paceline::simulate {

/// What simulating takes at most, roughly: workers that skip iterations have fewer rows.
struct Cost {
  double rows = 0;
  double time_s = 0;  ///< On one core.
  double bytes = 0;   ///< Of memory.
};

Cost cost_of(const Problem& problem, std::int64_t steps);

/// `invalid` if the job (which has a `problem`) could last longer than the 292 years that nanoseconds in 64 bits count.
Result<void> check_span(const Job& job);

}  // namespace paceline::simulate
