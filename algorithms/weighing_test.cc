#include "algorithms/weighing.h"

#include <gtest/gtest.h>

#include <array>

#include "algorithms/parse.h"

namespace paceline::algorithms {
namespace {

using scheduler::Payload;
using Reading = Strategy::Normalise;
using Counts = std::array<std::int64_t, 4>;
using Divisor = scheduler::Weighing::Divisor;

scheduler::Weighing weighing(const char* text) {
  auto strategy = parse_strategy(text, 4);
  EXPECT_TRUE(strategy) << text;
  return weighing_of(*strategy);
}

/// One step of T4 from 0 with lr 1/4 where worker i completed n[i] of 4 mini-batches.
double step(const char* reading, const Counts& n) {
  const auto rule = weighing((std::string("nonblocking(batches=4,normalise=") + reading + ")").c_str());
  constexpr std::array<double, 4> gradients{0, -8, -8, -24};
  double sum = 0;
  scheduler::Weighing::Total total;
  for (std::size_t i = 0; i < 4; ++i) {
    sum += rule.of_unfinished(n[i]) * (static_cast<double>(n[i]) * gradients[i]);
    total.bodies += n[i];
    ++total.contributions;
  }
  return -0.25 * sum / rule.divisor_of(total, 4, Payload::gradients);
}

TEST(WeighingTest, UnfinishedBatchesGiveTheGoldenSteps) {
  const Counts n{4, 2, 3, 1};
  EXPECT_NEAR(step("a", n), 0.5, 1e-12);
  EXPECT_NEAR(step("b", n), 1.0, 1e-12);
  EXPECT_NEAR(step("d", n), 1.6, 1e-12);
}

TEST(WeighingTest, FullBatchesGiveTheBaseAlgorithmInEveryReading) {
  for (const auto* reading : {"a", "b", "d"}) EXPECT_NEAR(step(reading, {4, 4, 4, 4}), 2.5, 1e-12);
}

TEST(WeighingTest, NothingCompletedIsNoStepAndNoDivisionByZero) {
  for (const auto* reading : {"a", "b", "d"}) EXPECT_EQ(step(reading, {0, 0, 0, 0}), 0);
}

TEST(WeighingTest, WhoContributesNothingCountsAsZeroWhereNobodyIsWaitedFor) {
  const scheduler::Weighing::Total three{.contributions = 3};
  EXPECT_EQ(weighing("eager-sgd(solo,sync=4)").divisor_of(three, 4, Payload::gradients), 4);
  EXPECT_EQ(weighing("eager-sgd(solo,sync=4)").divisor_of(three, 4, Payload::models), 3);
  EXPECT_EQ(weighing("allreduce").divisor_of(three, 4, Payload::gradients), 3);
}

TEST(WeighingTest, ModelsMayCountTheirSamples) {
  const auto rule = weighing("decoupled-diloco");
  EXPECT_EQ(rule.of_samples(5), 5);
  EXPECT_EQ(rule.divisor_of({.contributions = 2, .samples = 7}, 4, Payload::models), 7);
  EXPECT_EQ(rule.divisor_of({}, 4, Payload::models), 1) << "nobody has done anything";
  EXPECT_EQ(weighing("local-sgd").of_samples(5), 1);
}

}  // namespace
}  // namespace paceline::algorithms
