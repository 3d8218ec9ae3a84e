#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "algorithms/simulate/cluster/simulated_cluster.h"
#include "tests/sim/cluster/lives.h"

namespace paceline::sim {

using simulate::SimulatedCluster;
using simulate::SimulatedDriver;
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;

class ClusterTest : public testing::Test {
 protected:
  ClusterTest() { run_until_ready(); }
  void run_until_ready() {
    for (int i = 0; i < 100 && !cluster_.ready(); ++i) cluster_.run(20ms);
    ASSERT_TRUE(cluster_.ready());
  }
  SimulatedDriver& driver(NodeId node) {
    auto* const driver = cluster_.start_driver(node);
    cluster_.run(10ms);
    EXPECT_TRUE(driver->is_welcome());
    return *driver;
  }

  SimulatedCluster cluster_{{}};
};

TEST_F(ClusterTest, ADriverCallsActorsOfAllNodes) {
  auto& driver = this->driver(NodeId{0});
  for (int node = 0; node < 3; ++node) {
    const auto actor = driver.create(NodeId{node}, "", {});
    for (int i = 0; i < 10; ++i) driver.call(actor);
  }
  cluster_.run(1s);
  EXPECT_EQ(driver.calls().size(), 30u);
  for (const auto& [task, made] : driver.calls()) EXPECT_TRUE(made.result && *made.result) << to_string(task);
  EXPECT_THAT(cluster_.findings(), IsEmpty());
}

TEST_F(ClusterTest, ANameIsOneActors) {
  auto& zero = driver(NodeId{0});
  auto& one = driver(NodeId{1});
  const auto first = zero.create(NodeId{1}, "name", {});
  cluster_.run(100ms);
  const auto second = one.create(NodeId{2}, "name", {});
  cluster_.run(1s);
  EXPECT_FALSE(zero.actors().at(first));
  EXPECT_TRUE(one.actors().at(second)) << "another has it";
}

TEST_F(ClusterTest, AHeadThatIsKilledIsThereAgainAndAllGoesOn) {
  auto& driver = this->driver(NodeId{0});
  const auto actor = driver.create(NodeId{1}, "name", {});
  cluster_.run(100ms);
  cluster_.kill_head();
  driver.call(actor);
  driver.request("status", "{}");
  cluster_.run(20ms);
  EXPECT_TRUE(driver.calls().begin()->second.result) << "without a head";
  run_until_ready();
  cluster_.run(1s);
  EXPECT_TRUE(driver.requests().begin()->second.reply);
}

TEST_F(ClusterTest, CallsOfANodeThatIsKilledFail) {
  auto& driver = this->driver(NodeId{0});
  const auto actor = driver.create(NodeId{1}, "", {});
  cluster_.run(100ms);
  for (int i = 0; i < 5; ++i) driver.call(actor);
  cluster_.kill_agent(NodeId{1});
  cluster_.run(1s);
  for (const auto& [task, made] : driver.calls()) EXPECT_TRUE(made.result && !*made.result) << to_string(task);
  run_until_ready();
}

/// As whoever still has a connection of an agent before this one does, until it has noticed.
TEST(ClusterConnections, ThatAreRefusedAreTriedAgain) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimulatedCluster cluster({.seed = seed, .refuse = 0.5});
    cluster.run(20s);
    EXPECT_TRUE(cluster.ready()) << seed;
  }
}

/// A life of a cluster from a seed: drivers create, call and ask, while heads, agents and workers are killed and frozen
/// and agents are kept apart; then all is well again, and everything has to come to its end.
class Life {
 public:
  explicit Life(std::uint64_t seed)
      : random_(seed), cluster_({.nodes = kNodes, .seed = seed, .messages_a_turn = 1 + seed % 4, .refuse = 0.05}) {}

  /// What was wrong; empty: nothing.
  std::string live(int steps) {
    cluster_.run(200ms);
    for (int i = 0; i < steps && wrong_.empty(); ++i) {
      do_something();
      cluster_.run(std::chrono::milliseconds(number(20)));
      check_names();
    }
    cluster_.heal();
    cluster_.run(20s);
    check_end();
    for (const auto& finding : cluster_.findings()) note(finding);
    return wrong_;
  }
  std::uint64_t calls() const { return calls_; }

 private:
  static constexpr int kNodes = 4;

  std::uint64_t number(std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>(0, below - 1)(random_);
  }
  NodeId node() { return NodeId{static_cast<std::int32_t>(number(kNodes))}; }
  void note(const std::string& what) { wrong_ += what + "\n"; }

  void do_something() {
    const auto what = number(100);
    if (what < 2) return cluster_.kill_head();
    if (what < 4) return cluster_.kill_agent(node());
    if (what < 8) return void(cluster_.kill_worker(node(), number(100)));
    if (what < 12) return cluster_.freeze(node(), number(2) == 0);
    if (what < 14) return cluster_.freeze_head(number(2) == 0);
    if (what < 18) {
      const NodeId a = node(), b = node();
      const bool apart = number(2) == 0;
      if (a != b) number(3) == 0 ? cluster_.cut_one_way(a, b, apart) : cluster_.partition(a, b, apart);
      return;
    }
    auto* const driver = some_driver();
    if (driver == nullptr) return;
    if (what < 30) {
      const auto name = number(2) == 0 ? std::string() : "name-" + std::to_string(number(3));
      driver->create(node(), name, {static_cast<int>(number(2))});
    } else if (what < 36) {
      driver->request("find_actor", R"({"name": "name-)" + std::to_string(number(3)) + R"(", "type": ""})");
    } else if (what < 40) {
      driver->request("status", R"({"actors": "all", "workers": "all", "tasks": "all"})");
    } else if (!driver->actors().empty()) {
      auto actor = driver->actors().begin();
      std::advance(actor, static_cast<std::ptrdiff_t>(number(driver->actors().size())));
      driver->call(actor->first);
      ++calls_;
    }
  }

  SimulatedDriver* some_driver() {
    const NodeId at = node();
    for (auto& driver : cluster_.drivers())
      if (driver->node() == at && !driver->is_gone()) return driver->is_welcome() ? driver.get() : nullptr;
    (void)cluster_.start_driver(at);
    return nullptr;
  }

  void check_names() {
    std::map<std::string, ActorId> of;
    for (const auto& one : cluster_.living()) {
      if (one.claimed.empty()) continue;
      const auto [other, is_first] = of.emplace(one.claimed, one.actor);
      if (!is_first && other->second != one.actor)
        note("actors " + to_string(other->second) + " and " + to_string(one.actor) + " are both called " + one.claimed);
    }
  }

  void check_end() {
    if (!cluster_.ready()) note("not all nodes are registered, and reach each other");
    for (const auto& driver : cluster_.drivers()) {
      if (driver->is_gone()) continue;
      for (const auto& [task, made] : driver->calls())
        if (!made.result)
          note(driver->name() + ": call " + to_string(task) + " of actor " + to_string(made.actor) + " has no end");
      for (const auto& [id, asked] : driver->requests())
        if (!asked.reply) note(driver->name() + ": '" + asked.verb + "' has no answer");
    }
  }

  std::mt19937_64 random_;
  SimulatedCluster cluster_;
  std::string wrong_;
  std::uint64_t calls_ = 0;
};

TEST(ClusterLives, EndWell) {
  expect_to_end_well(120, "calls", 20, [](std::uint64_t seed, std::uint64_t& calls) {
    Life life(seed);
    auto wrong = life.live(400);
    calls += life.calls();
    return wrong;
  });
}

}  // namespace
}  // namespace paceline::sim
