#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/sim/cluster/simulated_cluster.h"

namespace paceline::sim {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::IsEmpty;

const std::vector<std::string> kStrategies{"allreduce",
                                           "allreduce(patience=2s)",
                                           "nonblocking(batches=4)",
                                           "local_sgd(period=4)",
                                           "wagma(group=2, period=4)",
                                           "wagma(group=2, period=4, late=skip)",
                                           "hier(groups=2, k1=2, k2=4)",
                                           "eager",
                                           "gossip",
                                           "sgp",
                                           "ad-psgd",
                                           "diloco"};

/// A job that runs without any fault comes to its end, and all its workers have one model.
class TrainingTest : public testing::TestWithParam<std::string> {};

TEST_P(TrainingTest, EndsWithOneModel) {
  for (const int nodes : {1, 2, 3}) {
    SimulatedCluster cluster({.nodes = nodes, .seed = static_cast<std::uint64_t>(nodes)});
    for (int i = 0; i < 100 && !cluster.ready(); ++i) cluster.run(20ms);
    auto& driver = *cluster.start_driver(NodeId{0});
    cluster.run(10ms);
    Training training;
    training.updates = 12;
    training.batch_takes = 5ms;
    training.evaluate_every = 4;
    const auto& job = driver.submit(json{{"strategy", GetParam()}, {"workers", 4}, {"seed", 1}}, training);
    for (int i = 0; i < 100 && !driver.is_over(job); ++i) cluster.run(100ms);
    EXPECT_TRUE(driver.is_over(job));
    EXPECT_EQ(job.failure, "");
    EXPECT_THAT(cluster.findings(), IsEmpty());
    EXPECT_EQ(cluster.trained().size(), 4u) << driver.state_of(job);
    for (const auto& one : cluster.trained()) {
      EXPECT_EQ(one.trouble, "");
      EXPECT_EQ(one.model, cluster.trained().front().model) << "worker " << one.rank << " on " << nodes << " nodes";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, TrainingTest, testing::ValuesIn(kStrategies));

}  // namespace
}  // namespace paceline::sim
