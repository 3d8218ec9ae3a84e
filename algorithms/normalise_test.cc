#include "algorithms/normalise.h"

#include <gtest/gtest.h>

#include <array>

namespace paceline::algorithms {
namespace {

using Reading = Strategy::Normalise;
using Counts = std::array<std::int64_t, 4>;

/// One step of T4 from 0 with lr 1/4 where worker i completed n[i] of N mini-batches.
double step(Reading reading, const Counts& n, std::int64_t batches) {
  constexpr std::array<double, 4> gradients{0, -8, -8, -24};
  double sum = 0;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    sum += contribution_weight(reading, n[i], batches) * (static_cast<double>(n[i]) * gradients[i]);
    total += n[i];
  }
  return -0.25 * result_scale(reading, 4, batches, total) * sum;
}

TEST(NormaliseTest, UnfinishedBatchesGiveTheGoldenSteps) {
  const Counts n{4, 2, 3, 1};
  EXPECT_NEAR(step(Reading::a, n, 4), 0.5, 1e-12);
  EXPECT_NEAR(step(Reading::b, n, 4), 1.0, 1e-12);
  EXPECT_NEAR(step(Reading::d, n, 4), 1.6, 1e-12);
}

TEST(NormaliseTest, FullBatchesGiveTheBaseAlgorithmInEveryReading) {
  for (const auto reading : {Reading::a, Reading::b, Reading::d})
    EXPECT_NEAR(step(reading, {4, 4, 4, 4}, 4), 2.5, 1e-12);
}

TEST(NormaliseTest, NothingCompletedIsNoStepAndNoDivisionByZero) {
  for (const auto reading : {Reading::a, Reading::b, Reading::d}) EXPECT_EQ(step(reading, {0, 0, 0, 0}, 4), 0);
}

}  // namespace
}  // namespace paceline::algorithms
