#include <gtest/gtest.h>

#include <map>

#include "tests/support/reference/testing.h"

namespace paceline::reference {
namespace {

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

TEST(ReferenceReductionTest, WagmaWithASyncEveryStepIsAllreduce) {
  for (unsigned seed = 0; seed < 10; ++seed)
    expect_same(run(random_job(seed, wagma(2, 1), 20)), run(random_job(seed, {.kind = Kind::allreduce}, 20)));
}

TEST(ReferenceReductionTest, HierAvgWithOneLevelIsLocalSgd) {
  const auto hier = [](int group, int k1, int k2) {
    return Strategy{.kind = Kind::hier_avg, .group = group, .k1 = k1, .k2 = k2};
  };
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto every_third = run(random_job(seed, {.kind = Kind::local_sgd, .period = 3}, 21));
    expect_same(run(random_job(seed, hier(2, 3, 3), 21)), every_third);
    expect_same(run(random_job(seed, hier(1, 1, 3), 21)), every_third);
    expect_same(run(random_job(seed, hier(4, 3, 9), 21)), every_third);
    expect_same(run(random_job(seed, hier(2, 1, 1), 21)), run(random_job(seed, {.kind = Kind::allreduce}, 21)));
  }
}

TEST(ReferenceReductionTest, PostLocalIsAllreduceOrLocalSgd) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    expect_same(run(random_job(seed, {.kind = Kind::post_local, .period = 3, .warmup = 50}, 20)),
                run(random_job(seed, {.kind = Kind::allreduce}, 20)));
    expect_same(run(random_job(seed, {.kind = Kind::post_local, .period = 3, .warmup = 0}, 20)),
                run(random_job(seed, {.kind = Kind::local_sgd, .period = 3}, 20)));
  }
}

TEST(ReferenceReductionTest, MatchaWithTheWholeCompleteGraphIsAllreduce) {
  const Strategy matcha{.kind = Kind::matcha,
                        .matchings = {{{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}, {{0, 3}, {1, 2}}},
                        .alpha = 0.25,
                        .active = {{0, 1, 2}}};
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto rows = run(random_job(seed, matcha, 20));
    const auto expected = run(random_job(seed, {.kind = Kind::allreduce}, 20));
    expect_same(rows, expected);
  }
}

TEST(ReferenceReductionTest, WithEqualCurvatureLocalSgdsAverageIsAllreduces) {
  for (const int period : {2, 5}) {
    auto job = random_job(4, {.kind = Kind::local_sgd, .period = period}, 10);
    for (Objective& objective : job.workers) objective.a = {1.5, 0.5};
    auto base = job;
    base.strategy = {.kind = Kind::allreduce};
    EXPECT_NEAR(row_of(run(job), 0, 9).model[0], row_of(run(base), 0, 9).model[0], 1e-12);
    EXPECT_NEAR(row_of(run(job), 0, 9).model[1], row_of(run(base), 0, 9).model[1], 1e-12);
  }
}

}  // namespace
}  // namespace paceline::reference
