#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::recorded {

/// A number that a run wrote down: its training loss ("loss"), an evaluation (by the metric's name), or what a worker
/// logged (by that name).
struct Scalar {
  std::string name;
  std::int32_t worker = -1;  ///< -1: of the job.
  std::int64_t update = 0;   ///< That were done then.
  double clock_s = 0;        ///< Training time: evaluations do not count.
  double value = 0;
};

/// In the order in which they were written; lines that are no events are passed over. `not_found`: no such run
/// directory.
Result<std::vector<Scalar>> scalars_of(const std::filesystem::path& run);

}  // namespace paceline::recorded
