#include "algorithms/simulate/cost.h"

#include <gtest/gtest.h>

namespace paceline::simulate {
namespace {

Cost cost(std::size_t workers, std::size_t numbers, std::int64_t steps, double noise = 0) {
  const Quadratic worker{Vector(numbers, 1), Vector(numbers, 1)};
  return cost_of(*make_quadratic(std::vector<Quadratic>(workers, worker), noise), steps);
}

TEST(Cost, GrowsWithStepsWorkersNumbersAndNoise) {
  const Cost small = cost(4, 10, 1000);
  EXPECT_EQ(small.rows, 4000);
  EXPECT_GT(small.time_s, 0);
  EXPECT_EQ(cost(4, 10, 2000).time_s, 2 * small.time_s);
  EXPECT_EQ(cost(4, 10, 2000).bytes, 2 * small.bytes);
  EXPECT_GT(cost(8, 10, 1000).bytes, 2 * small.bytes);
  EXPECT_GT(cost(4, 20, 1000).time_s, small.time_s);
  EXPECT_GT(cost(4, 10, 1000, 0.5).time_s, small.time_s);
}

TEST(Cost, AThousandMillionStepsAreTooMany) {
  EXPECT_GT(cost(2, 1, 1'000'000'000).time_s, 60);
  EXPECT_LT(cost(4, 1, 10'000).time_s, 1);
}

TEST(Span, IsBoundedByTheClock) {
  Job job;
  job.problem = make_quadratic({{{1}, {1}}});
  job.start = {{0}};
  job.strategy = "allreduce";
  job.compute_s = {{1e6}};
  job.steps = 1000;
  EXPECT_TRUE(check_span(job));
  job.steps = 10'000;
  EXPECT_FALSE(check_span(job));
  job.steps = 1000;
  job.strategy = "nonblocking(batches=100)";
  EXPECT_FALSE(check_span(job));
}

}  // namespace
}  // namespace paceline::simulate
