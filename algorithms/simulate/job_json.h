#pragma once

#include <cstdint>
#include <string_view>

#include "algorithms/simulate/job.h"
#include "runtime/base/result.h"

namespace paceline::simulate {

/// Bytes that a job's text may have.
inline constexpr std::size_t kJobTextMax = std::size_t{64} << 20;
inline constexpr std::int64_t kWorkersMax = 4096;
inline constexpr double kNumberMax = 1e100;  // Its square is still a number.
inline constexpr double kTimeMax = 1e6;
inline constexpr std::int64_t kStepsMax = 1'000'000'000'000;

/// The job, as its `problem`, that a text of docs/jobs.md describes. Everything is checked, the strategy's parameters
/// included; `invalid` is one line that names the field by its path ("problem.workers[2].a[1]"), its value and what is
/// allowed.
Result<Job> read_job(std::string_view text);

}  // namespace paceline::simulate
