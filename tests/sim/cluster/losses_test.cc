#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "algorithms/simulate/cluster/simulated_cluster.h"
#include "runtime/base/json.h"
#include "tests/sim/cluster/lives.h"

// Schedules in which a node is lost at a moment that no time decides: one of four workers, a node each, stands still
// with an update until all others wait, or have gone as far as they can; then its agent is killed. The models that the
// others end with are those of real processes (tests/integration/losses_test.py), which read the same file.

namespace paceline::sim {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using simulate::SimulatedCluster;
using simulate::Training;

constexpr const char* kFile = PACELINE_LOST_NODES;
constexpr std::int32_t kNodes = 4;

json schedules() {
  std::ifstream file(kFile);
  std::stringstream text;
  text << file.rdbuf();
  return parse_json(text.str());
}

/// What became of it: the lost workers, and the model of each of the others.
json lived(const json& schedule) {
  SimulatedCluster cluster({.nodes = kNodes});
  // No job goes on without its driver's node.
  auto& driver = begin(cluster, NodeId{schedule.at("rank") == 0 ? kNodes - 1 : 0});
  Training training;
  training.updates = schedule.at("updates");
  training.lr = 0.25;
  training.problem = Training::Problem::quadratics;
  training.stands_still = schedule.at("rank");
  training.at = schedule.at("update");
  auto& job = driver.submit(
      json{{"strategy", schedule.at("strategy")}, {"workers", kNodes}, {"seed", schedule.at("seed")}, {"restarts", 0}},
      training);
  cluster.run(2s);
  cluster.kill_agent(NodeId{training.stands_still});
  for (int i = 0; i < 300 && !driver.is_over(job); ++i) cluster.run(100ms);
  EXPECT_TRUE(driver.is_over(job)) << driver.state_of(job);
  EXPECT_EQ(job.failure, "") << schedule;
  json left = json::array(), models = json::object();
  for (const auto& event : job.news)
    if (event.value("event", "") == "left") left.push_back(event.at("worker"));
  for (const auto& one : cluster.trained()) models[std::to_string(one.rank)] = one.model.front();
  return {{"lost", left}, {"models", models}};
}

TEST(Losses, EndAsOnProcesses) {
  json all = schedules();
  ASSERT_GE(all.size(), 30U);
  const bool writes = std::getenv("PACELINE_WRITE_LOSSES") != nullptr;
  for (json& schedule : all) {
    const json found = lived(schedule);
    if (writes) schedule.update(found);
    EXPECT_EQ(found.at("lost"), schedule.at("lost")) << schedule;
    ASSERT_EQ(found.at("models").size(), schedule.at("models").size()) << schedule;
    for (const auto& [rank, model] : found.at("models").items())
      EXPECT_NEAR(model.get<double>(), schedule.at("models").at(rank).get<double>(), 1e-12) << rank << ": " << schedule;
  }
  if (!writes) return;
  std::ofstream file(kFile);
  file << "[\n";
  for (std::size_t i = 0; i < all.size(); ++i) file << "  " << all[i].dump() << (i + 1 < all.size() ? ",\n" : "\n");
  file << "]\n";
}

}  // namespace
}  // namespace paceline::sim
