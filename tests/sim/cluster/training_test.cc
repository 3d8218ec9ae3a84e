#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/simulate/cluster/simulated_cluster.h"
#include "runtime/base/json.h"
#include "tests/sim/cluster/lives.h"
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

/// At each millisecond of a short job something happens to one of its workers: all that are left end with one model.
void expect_one_model_whenever(const std::string& strategy, std::int64_t evaluate_every, Duration moments,
                               std::size_t least, const std::function<void(SimulatedCluster&)>& happens) {
  for (Duration moment{}; moment < moments; moment += 1ms) {
    SimulatedCluster cluster({.nodes = 2});
    for (int i = 0; i < 100 && !cluster.ready(); ++i) cluster.run(20ms);
    auto& driver = *cluster.start_driver(NodeId{0});
    cluster.run(10ms);
    Training training;
    training.updates = 12;
    training.evaluate_every = evaluate_every;
    const auto& job = driver.submit(json{{"strategy", strategy}, {"workers", 4}, {"seed", 1}}, training);
    cluster.run(5ms + moment);
    happens(cluster);
    for (int i = 0; i < 300 && !driver.is_over(job); ++i) cluster.run(100ms);
    ASSERT_TRUE(driver.is_over(job)) << driver.state_of(job);
    ASSERT_EQ(job.failure, "") << driver.state_of(job);
    ASSERT_GE(cluster.trained().size(), least) << driver.state_of(job);
    for (const auto& one : cluster.trained())
      ASSERT_EQ(one.model, cluster.trained().front().model) << strategy << ", " << seconds(moment) << " s";
  }
}

TEST(TrainingAtEachMoment, AWorkerIsKilled) {
  expect_one_model_whenever("allreduce", 2, 120ms, 3,
                            [](SimulatedCluster& cluster) { cluster.kill_worker(NodeId{0}, 0); });
}

TEST(TrainingAtEachMoment, AWorkerStandsStillForAWhile) {
  expect_one_model_whenever("local-sgd(period=4,late=skip,grace=2x)", -1, 100ms, 4, [](SimulatedCluster& cluster) {
    cluster.freeze_worker(NodeId{1}, 0, true);
    cluster.run(60ms);
    cluster.freeze_worker(NodeId{1}, 0, false);
  });
}

/// A life of a cluster from a seed, in which one or two jobs train while workers are killed and frozen, and the head
/// is, too; with `harder` also agents and what lies between them. Then all is well again, and everything has to come to
/// its end.
class TrainingLife {
 public:
  TrainingLife(std::uint64_t seed, bool harder)
      : random_(seed),
        harder_(harder),
        nodes_(1 + static_cast<std::int32_t>(number(4))),
        cluster_({.nodes = nodes_, .seed = seed, .messages_a_turn = 1 + seed % 4, .refuse = 0.05}) {}

  /// What was wrong; empty: nothing.
  std::string live(int steps) {
    cluster_.run(200ms);
    submit(NodeId{0});
    if (number(3) == 0) submit(node());
    for (int i = 0; i < steps; ++i) {
      do_something();
      cluster_.run(std::chrono::milliseconds(number(20)));
    }
    cluster_.heal();
    const auto goes_on = [](const Submitted& one) { return !one.driver->is_gone() && !one.driver->is_over(*one.job); };
    for (int i = 0; i < 600 && std::any_of(jobs_.begin(), jobs_.end(), goes_on); ++i) cluster_.run(100ms);
    for (const auto& one : jobs_) {
      if (!one.driver->is_gone()) check(one);
      check_averages(one);
    }
    seen_ = all_that_is_seen();
    check_that_nothing_is_left();
    for (const auto& finding : cluster_.findings()) note(finding);
    if (!wrong_.empty()) note("(on " + std::to_string(nodes_) + " nodes)");
    return wrong_;
  }
  /// All that could be seen of it, as text.
  const std::string& seen() const { return seen_; }
  std::uint64_t ended_well() const {
    return static_cast<std::uint64_t>(std::count_if(jobs_.begin(), jobs_.end(), [](const Submitted& one) {
      return !one.driver->is_gone() && one.job->failure.empty();
    }));
  }

 private:
  struct Submitted {
    SimulatedDriver* driver;
    const SimulatedDriver::Job* job;
    std::string strategy;
  };

  std::uint64_t number(std::uint64_t below) {
    return std::uniform_int_distribution<std::uint64_t>(0, below - 1)(random_);
  }
  NodeId node() { return NodeId{static_cast<std::int32_t>(number(static_cast<std::uint64_t>(nodes_)))}; }
  void note(const std::string& what) { wrong_ += what + "\n"; }

  void submit(NodeId node) {
    auto* const driver = cluster_.start_driver(node);
    cluster_.run(10ms);
    Training training;
    training.updates = 40;
    training.compute = "uniform(2ms,8ms)";
    training.evaluate_every = number(4) == 0 ? -1 : 10;
    training.seed = number(1000);
    const std::string strategy = kStrategies.at(number(kStrategies.size()));
    jobs_.push_back(
        {driver,
         &driver->submit(json{{"strategy", strategy}, {"workers", 4}, {"seed", 1}, {"patience_s", 3.0}}, training),
         strategy});
  }

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

  void check(const Submitted& one) {
    const auto& job = *one.job;
    if (!one.driver->is_over(job)) return note("no end: " + one.driver->state_of(job));
    const bool may_fail = harder_ || job.failure.find("before") != std::string::npos;
    if (!job.failure.empty() && !may_fail) note("has failed: " + one.driver->state_of(job));
    if (!job.failure.empty()) return;
    const Trained* first = nullptr;
    for (const auto& worker : cluster_.trained()) {
      if (worker.job != job.training.job) continue;
      if (!worker.trouble.empty()) {  // Of a node that was lost to the job: nobody has told it there of the job.
        if (!harder_) note("worker " + std::to_string(worker.rank) + ": " + worker.trouble);
        continue;
      }
      if (first == nullptr) first = &worker;
      if (worker.model != first->model)
        note(one.strategy + ": workers " + std::to_string(first->rank) + " and " + std::to_string(worker.rank) +
             " end with other models: " + testing::PrintToString(first->model) + " after " +
             std::to_string(first->updates) + " updates, " + testing::PrintToString(worker.model) + " after " +
             std::to_string(worker.updates));
    }
  }

  /// Whatever became of the job: where all take part in each update, what two workers had of one is the same.
  void check_averages(const Submitted& job) {
    if (!job.strategy.starts_with("allreduce") && !job.strategy.starts_with("nonblocking(batches")) return;
    std::map<std::int64_t, std::pair<std::int32_t, double>> of_update;
    for (const auto& one : cluster_.trained()) {
      if (one.job != job.job->training.job) continue;
      for (const auto& [update, average] : one.averages) {
        const auto [first, is_first] = of_update.try_emplace(update, one.rank, average);
        if (!is_first && first->second.second != average)
          note("workers " + std::to_string(first->second.first) + " and " + std::to_string(one.rank) +
               " have other averages of update " + std::to_string(update));
      }
    }
  }

  std::string all_that_is_seen() const {
    const auto counts = cluster_.counts();
    std::string text;
    for (const auto& one : jobs_) text += one.driver->state_of(*one.job) + "; ";
    text += std::to_string(counts.delivered) + " messages, " + std::to_string(counts.bytes) + " bytes, " +
            std::to_string(counts.lost) + " lost, at " + std::to_string(cluster_.now().time_since_epoch().count());
    for (const auto& one : cluster_.trained())
      text += "; " + std::to_string(one.rank) + ": " + testing::PrintToString(one.model);
    return text;
  }

  /// Of jobs that are over no agent has a part. (What a status holds differs, as memory does.)
  void check_that_nothing_is_left() {
    cluster_.run(5s);
    auto* const driver = cluster_.start_driver(NodeId{0});
    cluster_.run(20ms);
    const auto request = driver->request("status", "{}");
    cluster_.run(5s);
    const auto& reply = driver->requests().at(request).reply;
    if (!reply || !*reply) return note("no status");
    const auto status = parse_json(**reply);
    if (!status.at("jobs").empty()) note("left: " + json_text(status.at("jobs")).substr(0, 3000));
  }

  std::mt19937_64 random_;
  const bool harder_;
  const std::int32_t nodes_;
  SimulatedCluster cluster_;
  std::vector<Submitted> jobs_;
  std::string wrong_, seen_;
};

void live(bool harder) {
  expect_to_end_well(150, "jobs ended well", 0.1, [harder](std::uint64_t seed, std::uint64_t& well) {
    TrainingLife life(seed, harder);
    auto wrong = life.live(40);
    well += life.ended_well();
    return wrong;
  });
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
