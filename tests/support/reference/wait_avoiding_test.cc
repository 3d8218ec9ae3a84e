#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/reference/testing.h"

namespace paceline::reference {
namespace {

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

// Grouping ------------------------------------------------------------------------------------------------------------

using Groups = std::vector<std::vector<int>>;

Groups groups_of(const Job& job, int step) {
  Groups groups;
  for (const Row& row : run(job))
    if (row.step == step && row.group.front() == row.worker) groups.push_back(row.group);
  return groups;
}

TEST(ReferenceTest, ButterflyGroupsAreThoseOfThePaper) {
  const auto eight = mixing_only(8, wagma(4, 1000), 4);
  EXPECT_EQ(groups_of(eight, 0), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(groups_of(eight, 1), (Groups{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(groups_of(eight, 2), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(groups_of(eight, 3), groups_of(eight, 0));
  const auto pairs = mixing_only(8, wagma(2, 1000), 3);
  EXPECT_EQ(groups_of(pairs, 0).front(), (std::vector{0, 1}));
  EXPECT_EQ(groups_of(pairs, 1).front(), (std::vector{0, 2}));
  EXPECT_EQ(groups_of(pairs, 2).front(), (std::vector{0, 4}));
  EXPECT_EQ(groups_of(mixing_only(4, wagma(2, 1000), 2), 1), (Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(groups_of(mixing_only(16, wagma(4, 1000), 2), 1).front(), (std::vector{0, 4, 8, 12}));
  EXPECT_EQ(groups_of(mixing_only(64, wagma(8, 1000), 2), 1).front(), (std::vector{0, 8, 16, 24, 32, 40, 48, 56}));
}

TEST(ReferenceInvariantTest, AFewConsecutiveGroupAveragesGiveTheMeanOfAllFromAnyVersionOn) {
  for (int n = 2; n <= 5; ++n) {
    for (int s = 1; s <= n; ++s) {
      const int workers = 1 << n, needed = (n + s - 1) / s;
      const auto rows = run(mixing_only(workers, wagma(1 << s, 1000), n + needed));
      for (int first = 0; first < n; ++first) {
        std::map<int, double> x;
        for (int i = 0; i < workers; ++i) x[i] = i;
        for (int version = first; version < first + needed; ++version) {
          const auto before = x;
          for (int i = 0; i < workers; ++i) {
            x[i] = 0;
            for (const int j : group_of(rows, i, version)) x[i] += before.at(j) / (1 << s);
          }
        }
        for (const auto& [i, value] : x) EXPECT_NEAR(value, (workers - 1) / 2.0, 1e-9);
      }
    }
  }
}

TEST(ReferenceTest, StridedGroupsAlternate) {
  Strategy strided = wagma(3, 1000);
  strided.strided = true;
  const auto six = mixing_only(6, strided, 2);
  EXPECT_EQ(groups_of(six, 0), (Groups{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(groups_of(six, 1), (Groups{{0, 2, 4}, {1, 3, 5}}));
  expect_models(run(mixing_only(9, strided, 2)), 1, Doubles(9, 4));
  strided.group = 4;
  expect_models(run(mixing_only(16, strided, 2)), 1, Doubles(16, 7.5));
}

// Variants ------------------------------------------------------------------------------------------------------------

TEST(ReferenceTest, ALateWorkerMayMergeWithItsOwnVersion) {
  auto job = mixing_only(4, wagma(2, 9), 3);
  job.start = {{0}, {100}, {4}, {8}};
  job.compute_s = {{1, 2.5, 1, 1}};
  // Version 0 sums (0, 100) and (4, 8); version 1 (50, 6) and (100, 6): worker 1 published nothing new.
  const Row latest = row_of(run(job), 1, 0);
  EXPECT_EQ(latest.group, (std::vector{1, 3}));
  EXPECT_NEAR(latest.model[0], (100 + 6 + 100) / 3.0, 1e-12);
  job.strategy.late_version = true;
  const Row own = row_of(run(job), 1, 0);
  EXPECT_EQ(own.group, (std::vector{0, 1}));
  EXPECT_NEAR(own.model[0], (0 + 100 + 100) / 3.0, 1e-12);
}

TEST(ReferenceTest, ForALagOfOneBothMergesAgree) {
  auto job = random_job(3, wagma(2, 4), 40);
  job.compute_s = {{1, 1.5, 1, 1}, {1, 0.5, 1, 1}, {1, 1, 1.75, 1}, {1, 1, 0.25, 1}};
  auto own = job;
  own.strategy.late_version = true;
  expect_same(run(job), run(own));
}

TEST(ReferenceTest, CodeParityReproducesTheGoldenModels) {
  auto job = mixing_only(4, wagma(2, 4), 1);
  job.strategy.code = true;
  job.start = {{2}, {10}, {6}, {8}};
  expect_models(run(job), 0, {14.0 / 3, 22.0 / 3, 20.0 / 3, 22.0 / 3});
}

TEST(ReferenceTest, CodeParityMixesBeforeItSteps) {
  Strategy code = wagma(2, 2);
  code.code = true;
  const auto rows = run(spread(code, 2));
  // (0 + 3 + 0) / 3 - 0 and so on; local steps (0, .5, .5, 1.5).
  expect_models(rows, 0, {1, 2.5, 7.5, 9.5});
  // The sync: the mean 5.125, then the steps of gradients taken before it (1, -3, -0.5, -5).
  expect_models(rows, 1, {5.125 - 0.25, 5.125 + 0.75, 5.125 + 0.125, 5.125 + 1.25});
}

}  // namespace
}  // namespace paceline::reference
