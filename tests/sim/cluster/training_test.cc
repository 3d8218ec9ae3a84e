#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "algorithms/simulate/cluster/simulated_cluster.h"
#include "tests/sim/cluster/strategies.h"

namespace paceline::sim {

using simulate::SimulatedCluster;
using simulate::SimulatedDriver;
using simulate::Trained;
using simulate::Training;
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::IsEmpty;

/// A job that runs without any fault comes to its end, and all its workers have one model.
class TrainingTest : public testing::TestWithParam<const char*> {};

TEST_P(TrainingTest, EndsWithOneModel) {
  for (const int nodes : {1, 2, 3}) {
    SimulatedCluster cluster({.nodes = nodes, .seed = static_cast<std::uint64_t>(nodes)});
    for (int i = 0; i < 100 && !cluster.ready(); ++i) cluster.run(20ms);
    auto& driver = *cluster.start_driver(NodeId{0});
    cluster.run(10ms);
    Training training;
    training.updates = 12;
    training.compute = "uniform(2ms,8ms)";
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

/// A life of a cluster from a seed, in which jobs train while workers are killed and frozen, and the head is, too; with
/// `harder` also agents and what lies between them. Then all is well again, and everything has to come to its end.
class TrainingLife {
 public:
  TrainingLife(std::uint64_t seed, bool harder)
      : random_(seed),
        harder_(harder),
        nodes_(1 + static_cast<std::int32_t>(number(3))),
        strategy_(kStrategies.at(number(kStrategies.size()))),
        cluster_({.nodes = nodes_, .seed = seed, .messages_a_turn = 1 + seed % 4, .refuse = 0.05}) {}

  /// What was wrong; empty: nothing.
  std::string live(int steps) {
    cluster_.run(200ms);
    driver_ = cluster_.start_driver(NodeId{0});
    cluster_.run(10ms);
    Training training;
    training.updates = 40;
    training.compute = "uniform(2ms,8ms)";
    training.evaluate_every = 10;
    training.seed = number(1000);
    job_ = &driver_->submit(json{{"strategy", strategy_}, {"workers", 4}, {"seed", 1}, {"patience_s", 3.0}}, training);
    for (int i = 0; i < steps; ++i) {
      do_something();
      cluster_.run(std::chrono::milliseconds(number(20)));
    }
    cluster_.heal();
    for (int i = 0; i < 300 && !driver_->is_gone() && !driver_->is_over(*job_); ++i) cluster_.run(100ms);
    check();
    check_averages();
    for (const auto& finding : cluster_.findings()) note(finding);
    if (!wrong_.empty()) note("(" + strategy_ + " on " + std::to_string(nodes_) + " nodes)");
    return wrong_;
  }
  /// All that can be seen of it, as text.
  std::string seen() const {
    const auto counts = cluster_.counts();
    auto text = driver_->state_of(*job_) + "; " + std::to_string(counts.delivered) + " messages, " +
                std::to_string(counts.bytes) + " bytes, " + std::to_string(counts.lost) + " lost, at " +
                std::to_string(cluster_.now().time_since_epoch().count());
    for (const auto& one : cluster_.trained())
      text += "; " + std::to_string(one.rank) + ": " + testing::PrintToString(one.model);
    return text;
  }
  bool has_ended_well() const { return !driver_->is_gone() && job_->failure.empty(); }

 private:
  std::uint64_t number(std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>(0, below - 1)(random_);
  }
  NodeId node() { return NodeId{static_cast<std::int32_t>(number(static_cast<std::uint64_t>(nodes_)))}; }
  void note(const std::string& what) { wrong_ += what + "\n"; }

  void do_something() {
    const auto what = number(100);
    if (what < 4) return void(cluster_.kill_worker(node(), number(100)));
    if (what < 10) return void(cluster_.freeze_worker(node(), number(100), number(2) == 0));
    if (what < 12) return cluster_.kill_head();
    if (what < 16) return cluster_.freeze_head(number(2) == 0);
    if (!harder_) return;
    if (what < 18) return cluster_.kill_agent(node());
    if (what < 22) return cluster_.freeze(node(), number(2) == 0);
    if (what < 26 && nodes_ > 1) {
      const NodeId a = node(), b = node();
      const bool apart = number(2) == 0;
      if (a != b) number(3) == 0 ? cluster_.cut_one_way(a, b, apart) : cluster_.partition(a, b, apart);
    }
  }

  void check() {
    if (driver_->is_gone()) return;
    if (!driver_->is_over(*job_)) return note("no end: " + driver_->state_of(*job_));
    const bool may_fail = harder_ || job_->failure.find("before") != std::string::npos;
    if (!job_->failure.empty() && !may_fail) note("has failed: " + driver_->state_of(*job_));
    if (!job_->failure.empty()) return;
    const Trained* first = nullptr;
    for (const auto& one : cluster_.trained()) {
      if (!one.trouble.empty()) note("worker " + std::to_string(one.rank) + ": " + one.trouble);
      if (first == nullptr) first = &one;
      if (one.model != first->model)
        note("workers " + std::to_string(first->rank) + " and " + std::to_string(one.rank) +
             " end with other models: " + testing::PrintToString(first->model) + " after " +
             std::to_string(first->updates) + " updates, " + testing::PrintToString(one.model) + " after " +
             std::to_string(one.updates));
    }
  }

  /// Whatever became of the job: where all take part in each update, what two workers had of one is the same.
  void check_averages() {
    if (!strategy_.starts_with("allreduce") && !strategy_.starts_with("nonblocking(batches")) return;
    std::map<std::int64_t, std::pair<std::int32_t, double>> of_update;
    for (const auto& one : cluster_.trained())
      for (const auto& [update, average] : one.averages) {
        const auto [first, is_first] = of_update.try_emplace(update, one.rank, average);
        if (!is_first && first->second.second != average)
          note("workers " + std::to_string(first->second.first) + " and " + std::to_string(one.rank) +
               " have other averages of update " + std::to_string(update));
      }
  }

  std::mt19937_64 random_;
  const bool harder_;
  const std::int32_t nodes_;
  const std::string strategy_;
  SimulatedCluster cluster_;
  SimulatedDriver* driver_ = nullptr;
  const SimulatedDriver::Job* job_ = nullptr;
  std::string wrong_;
};

void live(bool harder) {
  const char* const more = std::getenv("PACELINE_CLUSTER_LIVES");
  const std::uint64_t lives = more != nullptr ? std::strtoull(more, nullptr, 10) : 150;
  const char* const from = std::getenv("PACELINE_CLUSTER_LIFE");
  const std::uint64_t first = from != nullptr ? std::strtoull(from, nullptr, 10) : 1;
  std::uint64_t well = 0;
  int failed = 0;
  for (std::uint64_t seed = first; seed < first + lives && failed < 5; ++seed) {
    std::string wrong;
    try {
      TrainingLife life(seed, harder);
      wrong = life.live(40);
      well += life.has_ended_well() ? 1 : 0;
    } catch (const std::exception& error) {
      wrong = error.what();
    }
    EXPECT_EQ(wrong, "") << "in the life of seed " << seed;
    failed += wrong.empty() ? 0 : 1;
  }
  if (failed == 0 && lives > 20) {
    EXPECT_GT(well, lives / 10);
  }
}

TEST(TrainingLives, OfOneSeedAreTheSameBitForBit) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    std::string first;
    for (int i = 0; i < 2; ++i) {
      TrainingLife life(seed, true);
      EXPECT_EQ(life.live(40), "");
      if (i == 1) {
        EXPECT_EQ(life.seen(), first) << seed;
      }
      first = life.seen();
    }
  }
}

TEST(TrainingLives, OfWorkersAndHeadsEndWell) { live(false); }
TEST(TrainingLives, OfAgentsToo) { live(true); }

}  // namespace
}  // namespace paceline::sim
