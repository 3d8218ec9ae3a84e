#include "algorithms/simulate/cost.h"

#include <algorithm>
#include <string>

#include "algorithms/strategy.h"

namespace paceline::simulate {
namespace {

// Of one step of one worker: whatever it is, for each number of the model, for each worker of the job. Measured on one
// core of an AMD EPYC (two cores, 2026-11), release build: 2 us and 216 bytes at 4 workers and one number, 16 us and
// 7,750 bytes at 1000 numbers; 5 us (wagma) at 1,024 workers and 32 numbers. Where a step takes from all others (the
// global averages of hier-avg, d-psgd(complete)) it is ten times as much.
constexpr double kNsStep = 2000, kNsNumber = 14, kNsMember = 3;
constexpr double kBytesStep = 216, kBytesNumber = 8, kBytesMember = 0.1;

constexpr double kSpanMax = 9e9;  // Seconds.

}  // namespace

Cost cost_of(const Problem& problem, std::int64_t steps) {
  const double members = problem.workers();
  const auto size = static_cast<double>(problem.dimensions());
  const double rows = members * static_cast<double>(steps);
  return {.rows = rows,
          .time_s = 1e-9 * rows * (kNsStep + problem.gradient_ns() + kNsNumber * size + kNsMember * members),
          .bytes = rows * (kBytesStep + kBytesNumber * size + kBytesMember * members)};
}

Result<void> check_span(const Job& job) {
  const std::int32_t workers = job.problem->workers();
  const auto strategy = algorithms::parse_strategy(job.strategy, workers);
  if (!strategy) return tl::unexpected(strategy.error());
  double longest = 0;
  for (const auto& row : job.compute_s) longest = std::max(longest, *std::max_element(row.begin(), row.end()));
  longest *= strategy->brings_batches() ? strategy->batches : 1;
  if ((longest + job.latency_s * workers) * static_cast<double>(job.steps) <= kSpanMax) return {};
  return fail(ErrorKind::invalid,
              "steps: " + std::to_string(job.steps) + " of up to " + std::to_string(longest) +
                  " s could last more than 9e9 s of virtual time, which is all there is; give fewer "
                  "steps or shorter times");
}

}  // namespace paceline::simulate
