#include "algorithms/simulate/cluster/cluster_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::simulate {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

ClusterScenario scenario(const std::string& strategy, const std::string& faults) {
  ClusterScenario scenario;
  scenario.strategy = strategy;
  scenario.nodes = 3;
  scenario.training.workers = 8;
  scenario.training.updates = 100;
  scenario.training.seed = 3;
  scenario.faults = *parse_faults(faults);
  return scenario;
}

TEST(ClusterRunTest, AJobWithoutFaultsLearns) {
  const auto outcome = run_cluster(scenario("allreduce", ""), [](double, const std::string&) {});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->failure, "");
  EXPECT_EQ(outcome->done, 8);
  EXPECT_EQ(outcome->updates, 100);
  EXPECT_TRUE(outcome->has_one_model);
  EXPECT_LT(outcome->loss, 0.1);
  EXPECT_GT(outcome->time_s, 0.5);
}

TEST(ClusterRunTest, WhatGoesWrongIsToldAndItIsTheSameForASeed) {
  std::string told[2];
  for (auto& one : told) {
    const auto outcome =
        run_cluster(scenario("wagma(sync=10,late=skip)", "kill=5/s,kill-head=5/s"),
                    [&](double at, const std::string& what) { one += std::to_string(at) + what + "\n"; });
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->failure, "");
    EXPECT_LT(outcome->done, 8);
    EXPECT_TRUE(outcome->has_one_model);
    EXPECT_THAT(outcome->findings, IsEmpty());
  }
  EXPECT_THAT(told[0], HasSubstr("is killed"));
  EXPECT_THAT(told[0], HasSubstr("the others go on without it"));
  EXPECT_EQ(told[0], told[1]);
}

TEST(ClusterRunTest, AStrategyThatIsNoneIsRefused) {
  const auto outcome = run_cluster(scenario("wagme", ""), [](double, const std::string&) {});
  ASSERT_FALSE(outcome);
  EXPECT_THAT(outcome.error().text, HasSubstr("unknown strategy 'wagme'"));
}

}  // namespace
}  // namespace paceline::simulate
