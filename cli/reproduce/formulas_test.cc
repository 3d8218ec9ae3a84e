#include "cli/reproduce/formulas.h"

#include <gtest/gtest.h>

#include <cmath>

#include "algorithms/period.h"

namespace paceline::cli::reproduce {
namespace {

// Each formula against numbers that were worked out apart from it: by exact fractions, by another formula for the same
// thing, or as the papers print them.

TEST(FormulasTest, TheLongestOfExponentialTimes) {
  EXPECT_EQ(harmonic(1), 1);
  EXPECT_NEAR(harmonic(4), 25.0 / 12, 1e-12);
  EXPECT_NEAR(harmonic(10), 7381.0 / 2520, 1e-12);
  // Non-blocking, eq. 10: the alternating sum that the paper gives for the same mean.
  double sum = 0, binomial = 1;
  for (int k = 0; k < 10; ++k) {
    sum += 10 * binomial * (k % 2 ? -1 : 1) / ((k + 1.0) * (k + 1));
    binomial *= (9.0 - k) / (k + 1);
  }
  EXPECT_NEAR(harmonic(10), sum, 1e-9);
}

TEST(FormulasTest, TheLongestOfMeansOfExponentialTimes) {
  EXPECT_NEAR(slowest_mean(16, 1), harmonic(16), 1e-4);
  EXPECT_NEAR(slowest_mean(1, 7), 1, 1e-4);
  EXPECT_NEAR(slowest_mean(2, 2), 1.375, 1e-4);  // 2 - 5/8: twice the mean less that of the shorter.
  for (const auto& [tau, expected] : {std::pair{2, 3.087}, {5, 2.136}, {10, 1.734}, {20, 1.483}, {100, 1.195}})
    EXPECT_NEAR(slowest_mean(16, tau) + 1.0 / tau, expected, 6e-4) << tau;
}

TEST(FormulasTest, ALongPeriodHidesTheAveraging) {
  EXPECT_NEAR(period_speedup(.9, 10), 190.0 / 109, 1e-12);
  EXPECT_NEAR(period_speedup(.9, 100), 1.883, 5e-4);
  EXPECT_NEAR(period_speedup(.5, 10), 10.0 / 7, 1e-12);
  EXPECT_NEAR(period_speedup(.5, 100), 1.493, 5e-4);
  EXPECT_NEAR(period_speedup(.1, 10), 1.089, 5e-4);
  EXPECT_NEAR(period_speedup(4, 10), 25.0 / 7, 1e-12);
  EXPECT_NEAR(period_speedup(4, 100), 4.808, 5e-4);
  EXPECT_EQ(period_speedup(.5, 1), 1);
}

TEST(FormulasTest, AdaCommsBestPeriod) {
  const auto best = [](double time) { return algorithms::optimal_period(1, 1, .08, 1, 1, time); };
  EXPECT_NEAR(best(100), 6.25, 1e-9);
  EXPECT_NEAR(best(400), 3.125, 1e-9);
  EXPECT_NEAR(best(3906.25), 1, 1e-9);
  // It is where the bound of eq. 13 is lowest: at T = 100 and D = Y = 1, of all whole periods at 6.
  const auto bound = [](int tau) { return ErrorBound{.tau = double(tau), .step_s = 1 + 1.0 / tau}.at(100); };
  for (const int tau : {1, 4, 5, 7, 8, 20}) EXPECT_GT(bound(tau), bound(6)) << tau;
}

TEST(FormulasTest, TheBoundsOfTwoPeriodsCross) {
  const ErrorBound one{.tau = 1, .step_s = 4.381}, ten{.tau = 10, .step_s = 1.734};
  EXPECT_NEAR(one.floor(), .005, 1e-12);
  EXPECT_NEAR(ten.floor(), .0626, 1e-12);
  EXPECT_NEAR(one.at(100), 1.10025, 1e-9);
  const double at = crossing_s(one, ten);
  EXPECT_NEAR(at, 1148.9, .5);
  EXPECT_NEAR(one.at(at), ten.at(at), 1e-12);
  EXPECT_GT(one.at(at / 2), ten.at(at / 2));
}

TEST(FormulasTest, HierAvgsBound) {
  EXPECT_EQ(hierarchy_bound(4, 32, 4), 1197);
  EXPECT_EQ(hierarchy_bound(8, 32, 4), 1512);
  EXPECT_EQ(hierarchy_bound(4, 32, 2), 2100);
  EXPECT_EQ(hierarchy_bound(1, 32, 4), 976.5);
  // K1 = K2 or S = 1 is K-AVG.
  EXPECT_EQ(hierarchy_bound(32, 32, 7), 3906);
  EXPECT_EQ(hierarchy_bound(1, 32, 1), 3906);
}

TEST(FormulasTest, WhatTheFirstToFinishLeavesOfTheData) {
  EXPECT_NEAR(share_used({1, 1, 2, 2}), .75, 1e-12);
  EXPECT_NEAR(share_used({4, 1, 2}), 7.0 / 12, 1e-12);
  EXPECT_NEAR(throughput_ratio({1, 1, 2, 2}), 1.5, 1e-12);
  EXPECT_NEAR(throughput_ratio({4, 1, 2}), 7.0 / 3, 1e-12);
  EXPECT_EQ(throughput_ratio({3, 3}), 1);
}

TEST(FormulasTest, TwoWaysToAverageOnANetwork) {
  EXPECT_NEAR(ring_s(32, .18), .34875, 1e-9);
  EXPECT_NEAR(ring_s(2, 1), 1, 1e-12);
  EXPECT_NEAR(doubling_s(32, .18), .9, 1e-9);
  EXPECT_NEAR(doubling_s(5, 1), 3, 1e-12);
}

}  // namespace
}  // namespace paceline::cli::reproduce
