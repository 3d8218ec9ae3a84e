#include "tests/support/reference/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace paceline::reference {
namespace {

using Kind = Strategy::Kind;
using Doubles = std::vector<double>;

/// Models of all workers after a step; NaN-free: a worker without that row is missing from the map.
std::map<int, double> models(const std::vector<Row>& rows, int step) {
  std::map<int, double> found;
  for (const Row& row : rows)
    if (row.step == step) found[row.worker] = row.model.at(0);
  return found;
}

Row row_of(const std::vector<Row>& rows, int worker, int step) {
  for (const Row& row : rows)
    if (row.worker == worker && row.step == step) return row;
  ADD_FAILURE() << "worker " << worker << " has no row for step " << step;
  return {};
}

void expect_models(const std::vector<Row>& rows, int step, const Doubles& expected) {
  const auto found = models(rows, step);
  ASSERT_EQ(found.size(), expected.size()) << "step " << step;
  for (const auto& [worker, model] : found)
    EXPECT_NEAR(model, expected[static_cast<std::size_t>(worker)], 1e-12) << "step " << step;
}

Strategy wagma(int group, int sync, bool skip = false, double grace_s = 0) {
  return {.kind = Kind::wagma, .period = sync, .group = group, .skip = skip, .grace_s = grace_s};
}

TEST(ReferenceTest, AllreduceReproducesTheGoldenModels) {
  const auto rows = run(t4({.kind = Kind::allreduce}, 3));
  expect_models(rows, 0, Doubles(4, 2.5));
  expect_models(rows, 1, Doubles(4, 4.0625));
  expect_models(rows, 2, Doubles(4, 5.0390625));
}

TEST(ReferenceTest, LocalSgdReproducesTheGoldenModels) {
  const auto rows = run(t4({.kind = Kind::local_sgd, .period = 2}, 4));
  expect_models(rows, 0, {0, 2, 2, 6});
  expect_models(rows, 1, Doubles(4, 3.875));
  expect_models(rows, 3, Doubles(4, 5.44921875));
}

TEST(ReferenceTest, OneShotAveragingReproducesTheGoldenModels) {
  const auto job = t4({.kind = Kind::local_sgd, .period = 5}, 4);
  expect_models(run(job), 1, {0, 3, 3.5, 9});
  expect_models(run(job), 3, {0, 3.75, 5.46875, 11.25});
  EXPECT_NEAR(summarise(job).model[0], 5.1171875, 1e-12);
}

TEST(ReferenceTest, AFinalSyncEndsWithTheAverage) {
  auto job = t4({.kind = Kind::local_sgd, .period = 5}, 4);
  job.final_sync = true;
  expect_models(run(job), 3, Doubles(4, 5.1171875));
}

TEST(ReferenceTest, WagmaWithPunctualWorkersReproducesTheGoldenModels) {
  const auto rows = run(t4(wagma(2, 4), 4));
  expect_models(rows, 0, {1, 1, 4, 4});
  expect_models(rows, 1, {2.875, 5.25, 2.875, 5.25});
  expect_models(rows, 2, {3.390625, 3.390625, 6.390625, 6.390625});
  expect_models(rows, 3, Doubles(4, 5.556640625));
}

TEST(ReferenceTest, WagmaWithALateWorkerReproducesTheGoldenModels) {
  auto job = t4(wagma(2, 4), 1);
  job.compute_s = {{1, 1.5, 1, 1}};
  const auto rows = run(job);
  expect_models(rows, 0, {0, 2.0 / 3, 4, 4});
  EXPECT_FALSE(row_of(rows, 1, 0).fresh);
  EXPECT_TRUE(row_of(rows, 0, 0).fresh);
  EXPECT_EQ(row_of(rows, 1, 0).group, (std::vector{0, 1}));
  EXPECT_EQ(row_of(rows, 1, 0).time_s, 1.5);
}

TEST(ReferenceTest, AnOldSendBufferCountsAsInThePaper) {
  // Local steps take (2, 10, 6, 8) to W' = (2, 4, 6, 8); worker 1 is late, so that its 10 goes in.
  auto job = t4(wagma(2, 4), 1);
  job.workers = {{{0}, {0}}, {{1}, {-14}}, {{0}, {0}}, {{0}, {0}}};
  job.start = {{2}, {10}, {6}, {8}};
  job.compute_s = {{1, 1.5, 1, 1}};
  expect_models(run(job), 0, {6, 16.0 / 3, 7, 7});
}

TEST(ReferenceTest, AtOneInstantVersionsAreExecutedBeforeLateMerges) {
  auto job = t4(wagma(2, 9), 3);
  job.compute_s = {{1, 2, 1, 1}};
  const auto rows = run(job);
  EXPECT_NEAR(row_of(rows, 1, 0).model[0], 4, 1e-12);
  EXPECT_NEAR(row_of(rows, 1, 1).model[0], 2.625, 1e-12);
  EXPECT_NEAR(row_of(rows, 1, 2).model[0], 115.0 / 48, 1e-12);
}

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

TEST(ReferenceTest, BlockMomentumReproducesTheGoldenBlocks) {
  const auto rows = run(t4({.kind = Kind::adacomm, .period = 2, .block_momentum = 0.5}, 6));
  expect_models(rows, 1, Doubles(4, 3.875));
  expect_models(rows, 3, Doubles(4, 7.38671875));
  expect_models(rows, 5, Doubles(4, 8.6317138671875));
}

TEST(ReferenceTest, AdacommFollowsTheLossOfItsWindow) {
  Job job;
  job.workers = {{{1}, {1}}};
  job.start = {{0}};
  job.lr = 0.5;  // The loss of step k is 4^-k / 2.
  job.steps = 12;
  job.compute_s = {{1}};
  job.strategy = {.kind = Kind::adacomm, .period = 4, .interval_s = 8, .loss_window = 100};
  EXPECT_EQ(row_of(run(job), 0, 7).period, 4);
  EXPECT_EQ(row_of(run(job), 0, 8).period, 3);  // ceil(4 sqrt(F/F_0)), F over 8 losses, F_0 over the first 4.
  job.strategy.loss_window = 2;
  EXPECT_EQ(row_of(run(job), 0, 8).period, 1);
}

TEST(ReferenceTest, AdacommsFirstRuleComparesTheLossWithItself) {
  const auto rows = run(t4({.kind = Kind::adacomm, .period = 4, .interval_s = 4}, 8));
  EXPECT_EQ(row_of(rows, 0, 3).period, 4);
  EXPECT_EQ(row_of(rows, 0, 4).period, 2);
  EXPECT_EQ(row_of(rows, 0, 5).group.size(), 4u);
}

TEST(ReferenceTest, AGraceLeavesTheAbsentBehindAndTheyMergeWithTheSync) {
  // Worker 3 takes 4 s. Syncs of the others: arrivals at 2, fired at 3 with worker 3's start.
  auto job = t4({.kind = Kind::local_sgd, .period = 2, .skip = true, .grace_s = 1}, 4);
  job.compute_s = {{1, 1, 1, 4}};
  const auto rows = run(job);
  const double mean = (0 + 3 + 3.5 + 0) / 4;
  EXPECT_NEAR(row_of(rows, 0, 1).model[0], mean, 1e-12);
  EXPECT_EQ(row_of(rows, 0, 1).time_s, 3);
  // At 4 it is late for step 0 and merges with that sum of four: (6.5 + 6) / 5; then it goes on with step 2.
  const Row late = row_of(rows, 3, 0);
  EXPECT_NEAR(late.model[0], 12.5 / 5, 1e-12);
  EXPECT_FALSE(late.fresh);
  EXPECT_EQ(late.time_s, 4);
  EXPECT_EQ(late.group.size(), 4u);
  EXPECT_TRUE(std::none_of(rows.begin(), rows.end(), [](const Row& row) { return row.worker == 3 && row.step == 1; }));
}

TEST(ReferenceTest, APunctualArrivalInTheInstantOfTheGracesEndIsPresent) {
  auto job = t4({.kind = Kind::local_sgd, .period = 1, .grace_s = 1}, 1);
  job.compute_s = {{1, 1, 1, 2}};
  const auto rows = run(job);
  expect_models(rows, 0, Doubles(4, 2.5));
  EXPECT_TRUE(row_of(rows, 3, 0).fresh);
}

TEST(ReferenceTest, AFinishedStepJoinsAPendingSync) {
  auto job = t4({.kind = Kind::local_sgd, .period = 3, .skip = true}, 3);
  job.compute_s = {{1, 1, 1, 3.5}};
  const auto rows = run(job);
  const Row joined = row_of(rows, 3, 2);
  EXPECT_TRUE(joined.fresh);
  EXPECT_EQ(joined.time_s, 3.5);
  EXPECT_EQ(rows.size(), 3u * 3u + 1u);
  // Three local steps of 0..2, one of worker 3: (0 + 3.5 + 4.625 + 6) / 4.
  EXPECT_NEAR(joined.model[0], 14.125 / 4, 1e-12);
}

TEST(ReferenceTest, AGraceInMedianStepsFollowsTheSteps) {
  auto job = t4({.kind = Kind::local_sgd, .period = 1, .skip = true, .grace_factor = 1.5}, 1);
  job.compute_s = {{2, 2, 2, 9}};
  EXPECT_EQ(row_of(run(job), 0, 0).time_s, 5);
}

TEST(ReferenceTest, MomentumLivesOnTheCombinedGradientOrInEveryWorker) {
  auto job = t4({.kind = Kind::allreduce}, 3);
  job.momentum = 0.5;
  // g = (-10, -6.25, ..): buffers -10, -11.25.
  expect_models(run(job), 1, Doubles(4, 2.5 + 11.25 / 4));
  job.nesterov = true;
  expect_models(run(job), 0, Doubles(4, (10 + 5) / 4.0));
  // Linear and never mixed: with equal buffers at the start averaging models every step is the same.
  auto local = job;
  local.strategy = {.kind = Kind::local_sgd, .period = 1};
  for (int step = 0; step < 3; ++step)
    EXPECT_NEAR(row_of(run(job), 0, step).model[0], row_of(run(local), 0, step).model[0], 1e-12);
}

// Reductions ----------------------------------------------------------------------------------------------------------

Job random_job(unsigned seed, Strategy strategy, int steps) {
  std::mt19937 random(seed);
  const auto number = [&](double least, double most) {
    return least + (most - least) * static_cast<double>(random()) / 4294967296.0;
  };
  Job job;
  for (int i = 0; i < 4; ++i) {
    job.workers.push_back({{number(0.5, 2), number(0.5, 2)}, {number(-5, 5), number(-5, 5)}});
    job.start.push_back({1, -1});
  }
  for (int t = 0; t < 17; ++t) {
    job.compute_s.emplace_back();
    for (int i = 0; i < 4; ++i) job.compute_s.back().push_back(0.25 * static_cast<double>(1 + random() % 8));
  }
  job.strategy = strategy;
  job.steps = steps;
  return job;
}

void expect_same(const std::vector<Row>& a, const std::vector<Row>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    EXPECT_EQ(a[k].worker, b[k].worker);
    EXPECT_EQ(a[k].step, b[k].step);
    EXPECT_EQ(a[k].time_s, b[k].time_s);
    EXPECT_EQ(a[k].group, b[k].group);
    EXPECT_EQ(a[k].fresh, b[k].fresh);
    for (std::size_t d = 0; d < a[k].model.size(); ++d) EXPECT_NEAR(a[k].model[d], b[k].model[d], 1e-9);
  }
}

TEST(ReferenceReductionTest, LocalSgdWithPeriodOneIsAllreduce) {
  for (unsigned seed = 0; seed < 20; ++seed)
    expect_same(run(random_job(seed, {.kind = Kind::local_sgd, .period = 1}, 30)),
                run(random_job(seed, {.kind = Kind::allreduce}, 30)));
}

TEST(ReferenceReductionTest, WagmaInGroupsOfOneIsLocalSgd) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    for (const bool skip : {false, true}) {
      expect_same(
          run(random_job(seed, wagma(1, 5, skip, skip ? 0.5 : 0), 30)),
          run(random_job(seed, {.kind = Kind::local_sgd, .period = 5, .skip = skip, .grace_s = skip ? 0.5 : 0}, 30)));
    }
  }
}

TEST(ReferenceReductionTest, AdacommThatNeverReachesABoundaryIsLocalSgd) {
  for (unsigned seed = 0; seed < 20; ++seed)
    expect_same(run(random_job(seed, {.kind = Kind::adacomm, .period = 5, .interval_s = 1e6}, 30)),
                run(random_job(seed, {.kind = Kind::local_sgd, .period = 5}, 30)));
}

TEST(ReferenceReductionTest, NonblockingWithEqualWorkersIsAllreduce) {
  for (const char reading : {'a', 'b', 'd'}) {
    auto job = random_job(1, {.kind = Kind::nonblocking, .batches = 4, .normalise = reading}, 10);
    job.compute_s = {{1, 1, 1, 1}};
    auto base = job;
    base.strategy = {.kind = Kind::allreduce};
    base.compute_s = {{4, 4, 4, 4}};
    expect_same(run(job), run(base));
  }
}

TEST(ReferenceReductionTest, PunctualGroupsOfAllAreAllreduce) {
  auto job = random_job(2, wagma(4, 7), 20);
  job.compute_s = {{1, 1, 1, 1}};
  auto base = job;
  base.strategy = {.kind = Kind::allreduce};
  expect_same(run(job), run(base));
}

TEST(ReferenceInvariantTest, WithoutStepsModelsStayInTheHullAndLagIsBounded) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    auto job = random_job(seed, wagma(2, 4, seed % 2 == 1), 40);
    job.lr = 0;
    for (int i = 0; i < 4; ++i) job.start[static_cast<std::size_t>(i)] = {static_cast<double>(i), 0};
    std::map<int, int> rows_of;
    for (const Row& row : run(job)) {
      EXPECT_GE(row.model[0], 0);
      EXPECT_LE(row.model[0], 3);
      ++rows_of[row.worker];
      if (row.group.size() == 4) {
        EXPECT_EQ(row.step % 4, 3);
      }
    }
    if (seed % 2 == 0) {
      for (const auto& [worker, count] : rows_of) EXPECT_EQ(count, 40) << worker;
    }
  }
}

// Long runs: unit compute, P = 4, S = 2, sync = 10
// ----------------------------------------------------------------------

struct Figures {
  double time_per_step;
  double share;
};

Figures long_run(Strategy strategy, const std::vector<std::vector<double>>& compute) {
  auto job = t4(strategy, 5000);
  job.compute_s = compute;
  const auto rows = run(job);
  return {rows.back().time_s / job.steps, static_cast<double>(rows.size()) / (4.0 * job.steps)};
}

void expect_figures(const Figures& found, double time_per_step, double share) {
  EXPECT_NEAR(found.time_per_step, time_per_step, 0.05 * time_per_step);
  EXPECT_NEAR(found.share, share, 0.05 * share);
}

TEST(ReferenceLongRunTest, OneWorkerIsAlwaysFourTimesSlower) {
  const std::vector<std::vector<double>> compute{{1, 1, 1, 4}};
  expect_figures(long_run(wagma(2, 10), compute), 4.0, 1.0);
  expect_figures(long_run(wagma(2, 10, true), compute), 1.20, 0.82);
  expect_figures(long_run(wagma(2, 10, true, 1), compute), 1.07, 0.82);
}

TEST(ReferenceLongRunTest, OneRandomWorkerIsDelayedByFiveEachStep) {
  std::mt19937 random(1);
  std::vector<std::vector<double>> compute(5000, {1, 1, 1, 1});
  for (auto& row : compute) row[random() % 4] += 5;
  expect_figures(long_run(wagma(2, 10), compute), 3.1, 1.0);
  expect_figures(long_run(wagma(2, 10, true), compute), 1.5, 0.57);
  expect_figures(long_run(wagma(2, 10, true, 1), compute), 1.2, 0.51);
}

}  // namespace
}  // namespace paceline::reference
