#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "algorithms/simulate/cluster/simulated_cluster.h"
#include "runtime/base/json.h"
#include "tests/sim/cluster/at_each_moment.h"

namespace paceline::sim {

using simulate::SimulatedCluster;
using simulate::SimulatedDriver;
using simulate::Training;
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

std::uint64_t drain_worker(SimulatedCluster& cluster, int rank) { return ask(cluster, "drain", {{"worker", rank}}); }
std::uint64_t drain_node(SimulatedCluster& cluster, int node) { return ask(cluster, "drain", {{"node", node}}); }

/// How often something was said of a job, as far as it is of its own.
int numbers_of(const SimulatedDriver::Job& job, const char* kind, const char* flag = nullptr) {
  int count = 0;
  for (const auto& event : job.news)
    count += event.value("event", "") == kind && (flag == nullptr || event.value(flag, false)) ? 1 : 0;
  return count;
}

/// Workers take places that nobody had, and give them up, whatever the others are at, under every strategy that has
/// returns.
class PlacesAreTaken : public testing::TestWithParam<const char*> {
 protected:
  static AtEachMoment of_four(int nodes, int begin_with, std::size_t least) {
    return {.strategy = GetParam(),
            .evaluate_every = 6,
            .moments = 90ms,
            .least = least,
            .nodes = nodes,
            .apart = 7ms,
            .updates = 40,
            .restarts = 100,
            .begin_with = begin_with};
  }
};

TEST_P(PlacesAreTaken, AtAnyMoment) {
  for (const int nodes : {1, 2})
    expect_one_model_whenever(of_four(nodes, 2, 4), [](SimulatedCluster& cluster) { scale(cluster, 4); });
}

TEST_P(PlacesAreTaken, AndGivenUp) {
  for (const int nodes : {1, 2})
    expect_one_model_whenever(of_four(nodes, 0, 2), [](SimulatedCluster& cluster) { scale(cluster, 2); });
}

TEST_P(PlacesAreTaken, AndGivenUpAndTakenAgain) {
  for (const Duration between : {1ms, 5ms, 20ms})
    expect_one_model_whenever(of_four(2, 2, 2), [between](SimulatedCluster& cluster) {
      for (const int workers : {4, 2, 3, 4}) {
        scale(cluster, workers);
        cluster.run(between);
      }
    });
}

/// Who comes dies while it loads its state, or at its first step; or who gives its state does.
TEST_P(PlacesAreTaken, AndWorkersAreKilledMeanwhile) {
  const bool averages = std::string(GetParam()) != "one-shot";  // Before the job's end, when it is too late to join.
  for (const std::uint64_t which : {0U, 1U, 2U})
    for (const Duration between : {2ms, 5ms})
      expect_one_model_whenever(of_four(1, 2, averages ? 4 : 2), [which, between](SimulatedCluster& cluster) {
        scale(cluster, 4);
        cluster.run(between);
        cluster.kill_worker(NodeId{0}, which);
      });
}

/// Who is to leave is killed before it does.
TEST_P(PlacesAreTaken, AndWhoIsToLeaveIsKilled) {
  for (const Duration between : {1ms, 4ms})
    expect_one_model_whenever(of_four(1, 0, 2), [between](SimulatedCluster& cluster) {
      scale(cluster, 2);
      cluster.run(between);
      cluster.kill_worker(NodeId{0}, 3);
    });
}

TEST_P(PlacesAreTaken, AndANodeIsLost) {
  for (const int workers : {4, 3})
    expect_one_model_whenever(of_four(3, 3, 2), [workers](SimulatedCluster& cluster) {
      scale(cluster, workers);
      cluster.run(3ms);
      cluster.kill_agent(NodeId{2});
    });
}

/// One worker, that of the leader, too, and the only one of its node.
TEST_P(PlacesAreTaken, AndAWorkerIsDrained) {
  for (const int rank : {0, 3})
    expect_one_model_whenever(of_four(4, 0, 3), [rank](SimulatedCluster& cluster) { drain_worker(cluster, rank); });
}

/// Its places are taken elsewhere, where there are any.
TEST_P(PlacesAreTaken, AndANodeIsDrained) {
  for (const int node : {0, 1})
    for (const int begin_with : {0, 2})
      expect_one_model_whenever(of_four(2, begin_with, 2),
                                [node](SimulatedCluster& cluster) { drain_node(cluster, node); });
}

/// Who is to leave, or who is to come in its stead, is killed, or the agent of the node is: nobody is there any more.
TEST_P(PlacesAreTaken, AndANodeThatIsDrainedIsLost) {
  for (const Duration between : {1ms, 4ms, 12ms}) {
    expect_one_model_whenever(of_four(2, 2, 1), [between](SimulatedCluster& cluster) {
      drain_node(cluster, 1);
      cluster.run(between);
      cluster.kill_agent(NodeId{1});
    });
    expect_one_model_whenever(of_four(2, 0, 2), [between](SimulatedCluster& cluster) {
      drain_node(cluster, 1);
      cluster.run(between);
      cluster.kill_worker(NodeId{1}, 2);
      cluster.kill_worker(NodeId{0}, 1);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, PlacesAreTaken, testing::ValuesIn(strategies_of_returns()));

/// The job goes on with as many as are wanted.
TEST(PlacesTest, AsManyTrainAsAreWanted) {
  for (const int nodes : {1, 2}) {
    SimulatedCluster cluster({.nodes = nodes});
    auto& driver = begin(cluster);
    Training training;
    training.workers = 8;
    training.updates = 400;
    const auto& job = driver.submit(
        json{{"strategy", "allreduce"}, {"workers", 8}, {"seed", 1}, {"begin_with", 2}, {"minimum", 2}}, training);
    cluster.run(100ms);
    EXPECT_EQ(job.places.taken(), 2);
    for (const int workers : {8, 3, 5}) {
      scale(cluster, workers);
      cluster.run(400ms);
      EXPECT_EQ(job.places.taken(), workers);
      EXPECT_EQ(cluster.living().size(), static_cast<std::size_t>(workers));
    }
    EXPECT_EQ(numbers_of(job, "returned"), 6 + 2);
    EXPECT_EQ(numbers_of(job, "left", "drained"), 5);
    for (int i = 0; i < 100 && !driver.is_over(job); ++i) cluster.run(100ms);
    EXPECT_TRUE(driver.is_over(job)) << driver.state_of(job);
    EXPECT_EQ(job.failure, "");
  }
}

/// A node that is drained has none of a job's workers, and no new job's; those come elsewhere while there are places.
TEST(PlacesTest, NobodyTrainsOnADrainedNode) {
  SimulatedCluster cluster({.nodes = 2});
  auto& driver = begin(cluster);
  Training training;
  training.workers = 8;
  training.updates = 400;
  const auto& job =
      driver.submit(json{{"strategy", "allreduce"}, {"workers", 8}, {"seed", 1}, {"begin_with", 5}}, training);
  cluster.run(100ms);
  drain_node(cluster, 1);
  cluster.run(400ms);
  EXPECT_FALSE(cluster.kill_worker(NodeId{1}, 0)) << "there is one";
  EXPECT_EQ(job.places.taken(), 4);
  EXPECT_EQ(numbers_of(job, "left", "drained"), 2);
  EXPECT_EQ(numbers_of(job, "returned"), 1);
  for (const int rank : {0, 1, 2, 3}) drain_worker(cluster, rank);
  cluster.run(400ms);
  EXPECT_EQ(job.places.taken(), 0);
  EXPECT_THAT(job.places.kept(), testing::SizeIs(1)) << "somebody has to have the model";
  EXPECT_EQ(cluster.living().size(), 1U);
  Training other;
  other.workers = 2;
  other.updates = 10;
  const auto& next = driver.submit(json{{"strategy", "allreduce"}, {"workers", 2}, {"seed", 1}}, other);
  for (int i = 0; i < 200 && !(driver.is_over(job) && driver.is_over(next)); ++i) cluster.run(100ms);
  for (const int rank : {0, 1}) EXPECT_EQ(next.places.node_of(rank), 0);
  for (const auto* const one : {&job, &next}) {
    EXPECT_TRUE(driver.is_over(*one)) << driver.state_of(*one);
    EXPECT_EQ(one->failure, "");
  }
}

/// Who is killed meanwhile leaves when it is back.
TEST(PlacesTest, NobodyStaysOnADrainedNode) {
  for (Duration after = 1ms; after <= 12ms; after += 1ms) {
    SimulatedCluster cluster({.nodes = 2});
    auto& driver = begin(cluster);
    Training training;
    training.updates = 300;
    const auto& job =
        driver.submit(json{{"strategy", "allreduce"}, {"workers", 4}, {"seed", 1}, {"restarts", 9}}, training);
    cluster.run(60ms);
    drain_node(cluster, 1);
    cluster.run(after);
    (void)cluster.kill_worker(NodeId{1}, 0);
    cluster.run(300ms);
    EXPECT_FALSE(cluster.kill_worker(NodeId{1}, 0)) << "there is one, " << seconds(after) << " s after";
    EXPECT_EQ(job.places.taken(), 2);
    ASSERT_FALSE(driver.is_over(job));
    for (int i = 0; i < 100 && !driver.is_over(job); ++i) cluster.run(100ms);
    EXPECT_TRUE(driver.is_over(job)) << driver.state_of(job);
    EXPECT_EQ(job.failure, "");
  }
}

/// Whenever it is, the others do not wait for it.
TEST(PlacesTest, OneThatIsKilledOnItsWayIsStartedAgain) {
  for (Duration after = 1ms; after <= 12ms; after += 1ms) {
    SimulatedCluster cluster({.nodes = 1});
    auto& driver = begin(cluster);
    Training training;
    training.workers = 3;
    training.updates = 60;
    const auto& job = driver.submit(
        json{{"strategy", "allreduce"}, {"workers", 3}, {"seed", 1}, {"begin_with", 2}, {"restarts", 9}}, training);
    cluster.run(60ms);
    scale(cluster, 3);
    cluster.run(after);
    const bool was_there = cluster.living().size() == 3;
    if (was_there) cluster.kill_worker(NodeId{0}, 2);
    for (int i = 0; i < 20 && !driver.is_over(job); ++i) cluster.run(100ms);
    EXPECT_TRUE(driver.is_over(job)) << driver.state_of(job);
    EXPECT_EQ(job.failure, "");
    EXPECT_GE(numbers_of(job, "returned"), 1) << texts_of(job);
    EXPECT_THAT(texts_of(job), testing::Not(testing::HasSubstr("before it began to train")));
  }
}

/// What cannot be is refused, and says what can.
TEST(PlacesTest, WhatCannotBeIsRefused) {
  SimulatedCluster cluster({.nodes = 2});
  auto& driver = begin(cluster);
  Training training;
  training.updates = 1000;
  (void)driver.submit(json{{"strategy", "allreduce"}, {"workers", 4}, {"seed", 1}}, training);
  cluster.run(50ms);
  for (const int workers : {0, 1, 5, -3}) {
    const auto asked = scale(cluster, workers);
    cluster.run(20ms);
    const auto& reply = driver.requests().at(asked).reply;
    ASSERT_TRUE(reply.has_value());
    ASSERT_FALSE(reply->has_value());
    EXPECT_THAT(reply->error().text,
                testing::HasSubstr(std::to_string(workers) + " workers cannot be: job 1 has from 2 to 4"));
  }
  (void)driver.submit(json{{"strategy", "noloco(period=3)"}, {"workers", 4}, {"seed", 1}, {"begin_with", 2}}, training);
  cluster.run(20ms);
  EXPECT_THAT(driver.jobs().back()->failure, testing::HasSubstr("no worker can join or leave a running job under"));
}

}  // namespace
}  // namespace paceline::sim
