#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/reference/testing.h"

namespace paceline::reference {
namespace {

// Closed forms of the papers at the values that the project quotes; the reference itself has no part in them.

TEST(FormulasTest, AdacommsBestPeriod) {
  const auto best = [](double steps) { return std::sqrt(2 * 1 * 1 / (std::pow(0.08, 3) * steps)); };
  EXPECT_NEAR(best(100), 6.25, 1e-9);
  EXPECT_NEAR(best(400), 3.125, 1e-9);
  EXPECT_NEAR(best(3906.25), 1, 1e-9);
}

TEST(FormulasTest, SpeedupOfALongPeriodUnderConstantTimes) {
  const auto speedup = [](double a, double tau) { return (1 + a) / (1 + a / tau); };
  EXPECT_NEAR(speedup(.9, 10), 1.743, 5e-4);
  EXPECT_NEAR(speedup(.9, 100), 1.883, 5e-4);
  EXPECT_NEAR(speedup(.5, 10), 1.429, 5e-4);
  EXPECT_NEAR(speedup(.5, 100), 1.493, 5e-4);
  EXPECT_NEAR(speedup(.1, 10), 1.089, 5e-4);
  EXPECT_NEAR(speedup(4, 10), 3.571, 5e-4);
  EXPECT_NEAR(speedup(4, 100), 4.808, 5e-4);
}

TEST(FormulasTest, AdacommsBoundsCross) {
  // y = D = F1 = L = s2 = 1, m = 16, eta = .08; T is wall-clock time.
  const double eta = .08;
  const auto floor_of = [&](double tau) { return eta / 16 + eta * eta * (tau - 1); };
  EXPECT_NEAR(floor_of(1), .005, 1e-12);
  EXPECT_NEAR(floor_of(10), .0626, 1e-12);
  // Times a step: 4.381 and 1.734.
  const double crossing = 2 / eta * (4.381 - 1.734) / (floor_of(10) - floor_of(1));
  EXPECT_NEAR(crossing, 1148.9, 0.5);
}

TEST(FormulasTest, HierAvgsBound) {
  const auto h = [](double k1, double k2, double s) {
    return (k2 - k1) * (4 * k2 + k1 - 3) / s + (k1 - 1) * (3 * k2 + k1 - 2);
  };
  EXPECT_EQ(h(4, 32, 4), 1197);
  EXPECT_EQ(h(8, 32, 4), 1512);
  EXPECT_EQ(h(4, 32, 2), 2100);
  EXPECT_EQ(h(32, 32, 7), 3906);
  EXPECT_EQ(h(1, 32, 1), 3906);
  EXPECT_EQ(h(1, 32, 4), 976.5);
}

TEST(FormulasTest, NonblockingsExpectations) {
  const auto harmonic = [](int workers) {
    double sum = 0;
    for (int k = 1; k <= workers; ++k) sum += 1.0 / k;
    return sum;
  };
  EXPECT_NEAR(harmonic(10), 2.928968, 5e-7);
  EXPECT_NEAR(harmonic(4), 2.0833, 5e-5);
  EXPECT_NEAR(1 / (4 * harmonic(4)), .12, 5e-4);
  EXPECT_NEAR(1 / (8 * harmonic(8)), .0460, 5e-5);
  EXPECT_NEAR(1 / (16 * harmonic(16)), .0185, 5e-5);
  // Uniform on [1, 2]: E min / E max.
  const auto ratio = [](double workers) { return (workers + 2) / (2 * workers + 1); };
  EXPECT_NEAR(ratio(4), .667, 5e-4);
  EXPECT_NEAR(ratio(8), .588, 5e-4);
  EXPECT_NEAR(ratio(16), .545, 5e-4);
}

}  // namespace
}  // namespace paceline::reference
