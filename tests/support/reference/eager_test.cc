#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/reference/testing.h"

namespace paceline::reference {
namespace {

using Trigger = Strategy::Trigger;

Strategy eager(bool drop = false, int sync = 0) { return {.kind = Kind::eager_sgd, .drop = drop, .sync = sync}; }

TEST(ReferenceTest, EagerSgdReproducesTheGoldenModels) {
  for (const bool drop : {false, true}) {
    auto job = t4(eager(drop), 2);
    job.compute_s = {{1, 1.5, 1, 1}, {1, 0.5, 1, 1}};
    const auto rows = run(job);
    expect_models(rows, 0, Doubles(4, 2));
    expect_models(rows, 1, Doubles(4, drop ? 3.75 : 4.25));
    EXPECT_EQ(row_of(rows, 1, 0).time_s, 1.5);
    EXPECT_FALSE(row_of(rows, 1, 0).fresh);
    EXPECT_TRUE(row_of(rows, 1, 1).fresh);
    EXPECT_EQ(group_of(rows, 1, 0).size(), 4u);
  }
}

TEST(ReferenceReductionTest, EagerSgdWithAFullQuorumIsAllreduce) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    auto quorum = eager();
    quorum.trigger = Trigger::quorum;
    quorum.quorum = 4;
    auto job = random_job(seed, quorum, 20), base = random_job(seed, {.kind = Kind::allreduce}, 20);
    job.momentum = base.momentum = 0.5;
    expect_same(run(job), run(base));
    job.strategy = eager(false, 1);  // Every version a sync.
    expect_same(run(job), run(base));
  }
}

TEST(ReferenceReductionTest, PunctualEagerSgdIsAllreduce) {
  auto job = random_job(1, eager(), 20), base = random_job(1, {.kind = Kind::allreduce}, 20);
  job.compute_s = base.compute_s = {{1, 1, 1, 1}, {2, 2, 2, 2}};
  expect_same(run(job), run(base));
}

TEST(ReferenceTest, SoloNeverWaitsForAStraggler) {
  auto job = t4(eager(), 8);
  job.compute_s = {{1, 1, 1, 4}};
  const auto rows = run(job);
  EXPECT_EQ(row_of(rows, 0, 7).time_s, 8);
  EXPECT_EQ(row_of(rows, 3, 1).time_s, 8);
  EXPECT_NEAR(summarise(job).wait_s[0], 0, 1e-9);
}

TEST(ReferenceTest, MajorityWaitsForItsInitiator) {
  auto majority = eager();
  majority.trigger = Trigger::majority;
  majority.initiators = {2, 0};
  auto job = t4(majority, 2);
  job.compute_s = {{1, 2, 3, 3.5}};
  const auto rows = run(job);
  EXPECT_EQ(row_of(rows, 0, 0).time_s, 3);
  EXPECT_TRUE(row_of(rows, 1, 0).fresh);
  EXPECT_FALSE(row_of(rows, 3, 0).fresh);
  EXPECT_EQ(row_of(rows, 0, 1).time_s, 4);
  expect_models(rows, 0, Doubles(4, 1));  // (-8 - 8) / 16; worker 3's gradient comes later.
}

TEST(ReferenceTest, AQuorumIsCounted) {
  auto quorum = eager();
  quorum.trigger = Trigger::quorum;
  quorum.quorum = 3;
  auto job = t4(quorum, 1);
  job.compute_s = {{1, 2, 3, 4}};
  const auto rows = run(job);
  EXPECT_EQ(row_of(rows, 0, 0).time_s, 3);
  EXPECT_EQ(row_of(rows, 3, 0).time_s, 4);
}

TEST(ReferenceTest, AWorkerLateBySeveralVersionsStepsWithTheNewest) {
  auto job = t4(eager(), 3);
  job.compute_s = {{1, 1, 1, 3.5}};
  const auto rows = run(job);
  // Worker 3 misses versions 0 and 1, and the model of the others.
  const double second = row_of(rows, 0, 1).model[0], third = row_of(rows, 0, 2).model[0];
  EXPECT_NEAR(row_of(rows, 3, 0).model[0], third - second, 1e-12);
  EXPECT_EQ(row_of(rows, 3, 1).time_s, 7);
  EXPECT_NEAR(row_of(rows, 3, 1).model[0], 2 * (third - second), 1e-12);
}

TEST(ReferenceTest, ASyncWaitsForAllAndAveragesTheModels) {
  auto job = t4(eager(false, 2), 2);
  job.start = {{0}, {4}, {0}, {0}};
  job.compute_s = {{1, 1, 1, 3}, {1, 1, 1, 1}};
  const auto rows = run(job);
  // Version 0 at 1 without worker 3: gradients 0, 0, -8.
  EXPECT_NEAR(row_of(rows, 0, 0).model[0], 0.5, 1e-12);
  EXPECT_EQ(row_of(rows, 0, 1).time_s, 4);
  // At 0.5, 4.5, 0.5, 0.5 (worker 3 stepped with version 0, too); its stale gradient -24 goes in.
  const double sum = 0.5 + 1 - 7.5 - 23 - 24;
  expect_models(rows, 1, Doubles(4, 1.5 - sum / 16));
}

TEST(ReferenceInvariantTest, WhatIsAccumulatedIsContributed) {
  // Worker 0 is always on time: its way is the sum of what was contributed. Everybody's model gives what was produced.
  auto job = random_job(8, eager(), 40);
  job.compute_s = {{1, 1.5, 1, 1}, {1, 0.5, 1, 1}, {1, 1, 1.75, 1.5}, {1, 1, 0.25, 0.5}};
  const auto rows = run(job);
  double produced = 0;
  int late = 0;
  for (const Row& row : rows) {
    const auto i = static_cast<std::size_t>(row.worker);
    const double x = row.step == 0 ? job.start[i][0] : row_of(rows, row.worker, row.step - 1).model[0];
    produced += job.workers[i].a[0] * (x - job.workers[i].c[0]);
    late += row.fresh ? 0 : 1;
  }
  EXPECT_EQ(late, 30);
  const double contributed = (job.start[0][0] - row_of(rows, 0, 39).model[0]) / job.lr * 4;
  EXPECT_NEAR(contributed, produced, 1e-9);
}

}  // namespace
}  // namespace paceline::reference
