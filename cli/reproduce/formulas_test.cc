#include "cli/reproduce/formulas.h"

#include <gtest/gtest.h>

namespace paceline::cli::reproduce {
namespace {

TEST(FormulasTest, TheLongestOfExponentialTimes) {
  EXPECT_NEAR(harmonic(4), 25.0 / 12, 1e-12);
  EXPECT_NEAR(harmonic(10), 2.928968, 1e-6);
  EXPECT_NEAR(slowest_mean(16, 1), harmonic(16), 1e-4);
  EXPECT_NEAR(slowest_mean(1, 7), 1, 1e-4);
  EXPECT_NEAR(slowest_mean(16, 10), 1.634, 5e-4);
  EXPECT_NEAR(slowest_mean(16, 100), 1.1845, 5e-5);
}

TEST(FormulasTest, ALongPeriodHidesTheAveraging) {
  EXPECT_NEAR(period_speedup(.9, 10), 1.743, 5e-4);
  EXPECT_NEAR(period_speedup(4, 100), 4.808, 5e-4);
  EXPECT_EQ(period_speedup(.5, 1), 1);
}

TEST(FormulasTest, TheBoundsOfTwoPeriodsCross) {
  const ErrorBound one{.tau = 1, .step_s = 4.381}, ten{.tau = 10, .step_s = 1.734};
  EXPECT_NEAR(one.floor(), .005, 1e-12);
  EXPECT_NEAR(ten.floor(), .0626, 1e-12);
  const double at = crossing_s(one, ten);
  EXPECT_NEAR(at, 1148.9, .5);
  EXPECT_NEAR(one.at(at), ten.at(at), 1e-12);
  EXPECT_GT(one.at(at / 2), ten.at(at / 2));
}

TEST(FormulasTest, HierAvgsBound) {
  EXPECT_EQ(hierarchy_bound(4, 32, 4), 1197);
  EXPECT_EQ(hierarchy_bound(8, 32, 4), 1512);
  EXPECT_EQ(hierarchy_bound(4, 32, 2), 2100);
  EXPECT_EQ(hierarchy_bound(32, 32, 7), hierarchy_bound(1, 32, 1));
}

TEST(FormulasTest, WhatTheFirstToFinishLeavesOfTheData) {
  EXPECT_NEAR(share_used({1, 1, 2, 2}), .75, 1e-12);
  EXPECT_NEAR(throughput_ratio({1, 1, 2, 2}), 1.5, 1e-12);
  EXPECT_EQ(throughput_ratio({3, 3}), 1);
}

TEST(FormulasTest, TwoWaysToAverageOnANetwork) {
  EXPECT_NEAR(ring_s(32, .18), .34875, 1e-9);
  EXPECT_NEAR(doubling_s(32, .18), .9, 1e-9);
}

}  // namespace
}  // namespace paceline::cli::reproduce
