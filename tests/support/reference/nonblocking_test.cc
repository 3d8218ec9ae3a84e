#include <gtest/gtest.h>

#include "tests/support/reference/testing.h"

namespace paceline::reference {
namespace {

TEST(ReferenceTest, NonblockingReproducesTheGoldenIterations) {
  auto job = t4({.kind = Kind::nonblocking, .batches = 4}, 2);
  job.compute_s = {{1, 2.1, 1.5, 6.2}};
  const auto rows = run(job);
  expect_models(rows, 0, Doubles(4, 0.375));
  expect_models(rows, 1, Doubles(4, 0.703125));
  for (const int step : {0, 1}) {
    EXPECT_EQ(row_of(rows, 0, step).batches_done, 4);
    EXPECT_EQ(row_of(rows, 1, step).batches_done, 1);
    EXPECT_EQ(row_of(rows, 2, step).batches_done, 2);
    EXPECT_EQ(row_of(rows, 3, step).batches_done, 0);
    EXPECT_FALSE(row_of(rows, 3, step).fresh);
    EXPECT_EQ(row_of(rows, 0, step).time_s, step == 0 ? 4 : 8);
  }
  const auto summary = summarise(job);
  EXPECT_NEAR(summary.wait_s[0], 0, 1e-9);
  EXPECT_NEAR(summary.wait_s[1], 8 - 3 * 2.1, 1e-9);  // 2.1, 4.2 (in vain), 6.3
  EXPECT_NEAR(summary.wait_s[3], 8 - 6.2, 1e-9);
}

TEST(ReferenceTest, NormalisationsReproduceTheGoldenSteps) {
  for (const auto& [reading, model] : std::map<char, double>{{'a', 0.5}, {'b', 1.0}, {'d', 1.6}}) {
    auto job = t4({.kind = Kind::nonblocking, .batches = 4, .normalise = reading}, 1);
    job.compute_s = {{1, 2, 1.25, 4}};
    const auto rows = run(job);
    expect_models(rows, 0, Doubles(4, model));
    EXPECT_EQ(row_of(rows, 2, 0).batches_done, 3);
  }
}

Strategy over(Kind base, char normalise = 'b', bool wait = false) {
  return {.kind = Kind::nonblocking, .batches = 4, .normalise = normalise, .base = base, .wait = wait};
}

TEST(ReferenceTest, NonblockingWithEveryMiniBatchDoneReproducesTheGoldenStep) {
  for (const char reading : {'a', 'b', 'd'})
    expect_models(run(t4(over(Kind::allreduce, reading), 1)), 0, Doubles(4, 2.5));
}

TEST(ReferenceTest, NonblockingDpsgdReproducesTheGoldenModels) {
  auto job = spread(over(Kind::d_psgd), 1);
  job.compute_s = {{1, 2, 1.25, 4}};
  expect_models(run(job), 0, {4, 3.25, 6.375, 5.375});
  EXPECT_EQ(group_of(run(job), 0, 0), (std::vector{0, 1, 3}));
  job.strategy.normalise = 'a';
  expect_models(run(job), 0, {4, 3.125, 6.28125, 5.09375});
}

TEST(ReferenceTest, NonblockingHierAvgReproducesTheGoldenModels) {
  Strategy strategy = over(Kind::hier_avg);
  strategy.group = 2;
  strategy.k2 = 2;
  auto job = t4(strategy, 2);
  job.compute_s = {{1, 2, 1.25, 4}, {1, 1, 1, 1}};
  // n = (4, 2, 3, 1), own steps to (0, 1, 1.5, 1.5), means of (0, 1) and (2, 3); worker 2 begins the second update at 5
  // and does 3: own steps to (0.375, 2.25, 2.71875, 6.75), and the mean of all.
  expect_models(run(job), 0, {0.5, 0.5, 1.5, 1.5});
  expect_models(run(job), 1, Doubles(4, 3.0234375));
  EXPECT_EQ(group_of(run(job), 2, 0), (std::vector{2, 3}));
}

TEST(ReferenceTest, AcrossGossipReadingDMovesTheMeanAsAllreduceDoes) {
  auto job = t4(over(Kind::d_psgd, 'd'), 1);
  job.compute_s = {{1, 2, 1.25, 4}};
  EXPECT_NEAR(summarise(job).model[0], 1.6, 1e-12);
}

TEST(ReferenceTest, WaitingForWhatIsInFlightCountsIt) {
  auto job = t4(over(Kind::allreduce, 'b', true), 2);
  job.compute_s = {{1, 2, 1.25, 4}, {2, 1, 1.5, 8.5}};
  const auto rows = run(job);
  // Signal at 4; worker 2's fourth mini-batch ends at 5.
  std::vector<int> done;
  for (int i = 0; i < 4; ++i) done.push_back(row_of(rows, i, 0).batches_done);
  EXPECT_EQ(done, (std::vector{4, 2, 4, 1}));
  EXPECT_EQ(row_of(rows, 0, 0).time_s, 5);
  expect_models(rows, 0, Doubles(4, (8 * 0.5 + 8 + 24 * 0.25) / 16));
  // All begin at 5, signal at 9: worker 3's first mini-batch ends last, at 13.5.
  done.clear();
  for (int i = 0; i < 4; ++i) done.push_back(row_of(rows, i, 1).batches_done);
  EXPECT_EQ(done, (std::vector{2, 4, 3, 1}));
  EXPECT_EQ(row_of(rows, 0, 1).time_s, 13.5);
  EXPECT_NEAR(summarise(job).wait_s[3], 13.5 - 12.5, 1e-9);
}

TEST(ReferenceTest, AWorkerWithoutAMiniBatchOnlyMixes) {
  auto job = spread(over(Kind::d_psgd), 1);
  job.momentum = 0.5;
  job.compute_s = {{1, 1, 1, 100}};
  expect_models(run(job), 0, {4, 3.5, 6.5, 5});
  EXPECT_FALSE(row_of(run(job), 3, 0).fresh);
  // In the second iteration worker 3 still has neither a gradient nor a buffer: (x_2 + x_3 + x_0) / 3.
  job.steps = 2;
  EXPECT_NEAR(row_of(run(job), 3, 1).model[0], (6.5 + 5 + 4) / 3, 1e-12);
}

TEST(ReferenceTest, NonblockingOverAServerIsNonblocking) {
  auto job = random_job(6, over(Kind::server), 20), base = random_job(6, over(Kind::allreduce), 20);
  job.momentum = base.momentum = 0.5;
  expect_same(run(job), run(base));
}

TEST(ReferenceReductionTest, NonblockingWithEqualWorkersIsItsBase) {
  const Strategy ring{.kind = Kind::d_psgd};
  const Strategy matcha{
      .kind = Kind::matcha, .matchings = {{{0, 1}, {2, 3}}, {{1, 2}}}, .alpha = 0.4, .active = {{0}, {}, {0, 1}}};
  const Strategy clusters{.kind = Kind::hier_avg, .group = 2, .k1 = 2, .k2 = 5};
  for (const Strategy& base_strategy : {ring, matcha, clusters}) {
    for (const bool wait : {false, true}) {
      auto job = random_job(7, base_strategy, 15);
      job.momentum = 0.5;
      job.compute_s = {{4, 4, 4, 4}};
      auto batches = job;
      batches.compute_s = {{1, 1, 1, 1}};
      batches.strategy.base = base_strategy.kind;
      batches.strategy.kind = Kind::nonblocking;
      batches.strategy.batches = 4;
      batches.strategy.wait = wait;
      expect_same(run(batches), run(job));
    }
  }
}

TEST(ReferenceInvariantTest, FasterWorkersDoNoFewerMiniBatches) {
  for (const bool wait : {false, true}) {
    auto job = t4(over(Kind::allreduce, 'b', wait), 1);
    job.compute_s = {{0.7, 0.9, 1.3, 2.1}};
    const auto rows = run(job);
    for (int i = 0; i < 3; ++i) EXPECT_GE(row_of(rows, i, 0).batches_done, row_of(rows, i + 1, 0).batches_done);
  }
}

TEST(ReferenceTest, WithAWorkerTwiceAsSlowAnIterationTakesHalfTheTime) {
  auto job = t4(over(Kind::allreduce), 50);
  job.compute_s = {{1, 1, 1, 2}};
  auto base = job;
  base.strategy = {.kind = Kind::allreduce};
  base.compute_s = {{4, 4, 4, 8}};
  EXPECT_EQ(summarise(job).virtual_s / summarise(base).virtual_s, 0.5);
}

}  // namespace
}  // namespace paceline::reference
