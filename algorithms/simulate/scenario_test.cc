#include "algorithms/simulate/scenario.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

namespace paceline::simulate {
namespace {

using testing::Each;
using testing::ElementsAre;

Job job_of(const Scenario& scenario, bool brings_batches = false) {
  return scenario_job(scenario, scenario_problem(scenario), "allreduce", brings_batches);
}

TEST(Scenario, EveryStepHasATimeForEachWorker) {
  const Job job = job_of({.workers = 3, .steps = 5});
  EXPECT_EQ(job.compute_s.size(), 5u);
  EXPECT_THAT(job.compute_s, Each(ElementsAre(1, 1, 1)));
  EXPECT_EQ(job.problem->workers(), 3);
  EXPECT_EQ(job.start[0].size(), job.problem->dimensions());
}

TEST(Scenario, ASlowWorkerAlwaysTakesSoManyTimesAsLong) {
  EXPECT_THAT(job_of({.workers = 3, .steps = 5, .slow = {{1, 4}}}).compute_s, Each(ElementsAre(1, 4, 1)));
}

TEST(Scenario, ANamedStragglerIsDelayedAtEveryStep) {
  EXPECT_THAT(job_of({.workers = 3, .steps = 5, .straggle = {.worker = 2, .delay_s = 0.5}}).compute_s,
              Each(ElementsAre(1, 1, 1.5)));
}

TEST(Scenario, RandomStragglersAreAsManyAsSaidAndNotAlwaysTheSame) {
  const Job job = job_of({.workers = 4, .steps = 400, .straggle = {.count = 2, .delay_s = 1}});
  std::vector<int> times(4);
  for (const auto& row : job.compute_s) {
    EXPECT_EQ(std::count(row.begin(), row.end(), 2.0), 2);
    for (std::size_t i = 0; i < 4; ++i) times[i] += row[i] == 2;
  }
  for (int count : times) EXPECT_NEAR(count, 200, 40);
}

TEST(Scenario, StepsOfSeveralMiniBatchesTakeTheSumAndTheMeanOfTheSameDraws) {
  const Scenario scenario{.workers = 2, .steps = 3, .compute = Exponential{1}, .batches = 4};
  const Job whole = job_of(scenario), parts = job_of(scenario, true);
  for (std::size_t t = 0; t < 3; ++t) {
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(whole.compute_s[t][i], 4 * parts.compute_s[t][i], 1e-12);
  }
}

TEST(Scenario, TheModelWeighsOnTheNetworkWhatIsSaid) {
  const Scenario scenario{.bandwidth_Bps = 1e9, .model_bytes = 256e6};
  EXPECT_EQ(scenario.byte_factor(), 1e6);
  EXPECT_EQ(job_of(scenario).bandwidth_Bps, 1e9);
  EXPECT_EQ(job_of(scenario).model_bytes, 256e6);
}

}  // namespace
}  // namespace paceline::simulate
