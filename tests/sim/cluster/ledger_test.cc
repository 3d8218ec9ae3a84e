#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <string>

#include "algorithms/simulate/cluster/simulated_cluster.h"
#include "runtime/base/json.h"
#include "tests/sim/cluster/at_each_moment.h"
#include "tests/sim/cluster/lives.h"
#include "tests/sim/cluster/strategies.h"

namespace paceline::sim {

using simulate::SimulatedCluster;
using simulate::SimulatedDriver;
using simulate::Training;
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr std::int64_t kUpdates = 24;

/// Each mini-batch of each worker has a number of the model to itself, which only it makes another than 0: what is
/// another than 0 in the job's model has been used.
struct OneHot {
  const char* strategy = "allreduce";
  std::int32_t nodes = 1;
  int restarts = 0;
  int begin_with = 0;
};

Training training_of(std::int64_t bodies) {
  Training training;
  training.problem = Training::Problem::one_hot;
  training.updates = kUpdates;
  training.lr = 1;
  training.epoch = 5 * bodies;  // The job ends within one.
  return training;
}

std::int64_t bodies_of(const std::string& strategy) { return algorithms::parse_strategy(strategy, 4)->batches; }

/// Mini-batches of a worker in the whole job, each leg of which may have another number of them an update.
std::int64_t bodies_in_all(const char* strategy, const SimulatedDriver::Job& job) {
  std::map<std::int64_t, std::int64_t> legs{{0, bodies_of(strategy)}};  // By their first updates.
  for (const json& event : job.news)
    if (event.value("event", "") == "changed") legs[event.at("update")] = bodies_of(event.at("strategy"));
  std::int64_t all = 0;
  for (auto leg = legs.begin(); leg != legs.end(); ++leg)
    all += ((std::next(leg) == legs.end() ? kUpdates : std::next(leg)->first) - leg->first) * leg->second;
  return all;
}

/// What is wrong with a row, as the model has it; empty: nothing. `bodies`: of a worker in the whole job.
std::string wrong_row(const char* strategy, std::int64_t bodies, const json& row, const std::vector<double>& model,
                      const Training& training) {
  const std::int64_t epoch = row.at("epoch"), begin = epoch * training.epoch, end = begin + training.epoch;
  std::int64_t used = 0, sum = 0;
  for (std::int32_t rank = 0; rank < training.workers; ++rank)
    for (std::int64_t body = begin; body < std::min(end, bodies); ++body)
      used += model.at(training.index_of(rank, body)) != 0 ? 1 : 0;
  for (const char* const what : {"committed", "abandoned", "skipped", "late", "lost", "tail"})
    sum += row.at(what).get<std::int64_t>();
  // Of a model that is exchanged in parts some may be there, and some not.
  const bool by_parts = std::string(strategy).starts_with("streaming");
  if (row.at("committed") != used && !by_parts) return std::to_string(used) + " have been used: " + row.dump();
  if (row.at("twice") != 0) return "twice: " + row.dump();
  if (end <= bodies ? sum != row.at("samples") : sum > row.at("samples"))
    return "the numbers do not add up: " + row.dump();
  return {};
}

/// Runs a job to its end, in which something happens at a moment; what is wrong with its ledger.
std::string wrong_ledger(const OneHot& how, Duration moment, const std::function<void(SimulatedCluster&)>& happens) {
  SimulatedCluster cluster({.nodes = how.nodes});
  auto& driver = begin(cluster);
  const auto& job = driver.submit({{"strategy", how.strategy},
                                   {"workers", 4},
                                   {"seed", 1},
                                   {"restarts", how.restarts},
                                   {"begin_with", how.begin_with}},
                                  training_of(bodies_of(how.strategy)));
  cluster.run(moment);
  if (happens) happens(cluster);
  for (int i = 0; i < 300 && !driver.is_over(job); ++i) cluster.run(100ms);
  if (job.failure.starts_with("all workers have ended")) return {};  // Nobody has a model.
  if (!driver.is_over(job) || !job.failure.empty()) return driver.state_of(job) + "; " + job.failure;
  cluster.run(300ms);  // What its nodes say last.
  const auto& trained = cluster.trained();
  const auto model = std::find_if(trained.begin(), trained.end(),
                                  [&job](const auto& one) { return !has_left(job, one) && one.trouble.empty(); });
  if (model == trained.end()) return "nobody has ended with a model";
  const json rows = job.ledger.rows();
  const std::int64_t bodies = bodies_in_all(how.strategy, job), each = job.training.epoch;
  if (std::ssize(rows) != (bodies + each - 1) / each) return "rows of other epochs: " + rows.dump();
  for (const auto& row : rows)
    if (auto wrong = wrong_row(how.strategy, bodies, row, model->model, job.training); !wrong.empty()) return wrong;
  return {};
}

void expect_right_ledgers(const OneHot& how, const std::function<void(SimulatedCluster&)>& happens,
                          Duration until = 150ms) {
  for (Duration moment = 20ms; moment < until; moment += kCoarser * 3ms)
    EXPECT_EQ(wrong_ledger(how, moment, happens), "")
        << how.strategy << " on " << how.nodes << " nodes, at " << seconds(moment);
}

class TheLedgerIsRight : public testing::TestWithParam<const char*> {};

TEST_P(TheLedgerIsRight, WhenNothingHappens) {
  for (const std::int32_t nodes : {1, 2}) EXPECT_EQ(wrong_ledger({GetParam(), nodes}, 0ms, {}), "") << nodes;
}

TEST_P(TheLedgerIsRight, WhenAWorkerIsKilled) {
  for (const std::int32_t nodes : {1, 2})
    expect_right_ledgers({GetParam(), nodes}, [](SimulatedCluster& cluster) { cluster.kill_worker(NodeId{0}, 1); });
}

/// Each leg of the job goes on with what the one before has left of an epoch, which may end within an update.
TEST_P(TheLedgerIsRight, WhenTheStrategyIsChanged) {
  const std::string from = GetParam();
  const auto at = std::find(kStrategies.begin(), kStrategies.end(), from) - kStrategies.begin();
  const auto change = [](SimulatedCluster& cluster, const std::string& to) { ask(cluster, "set", {{"strategy", to}}); };
  if (from == "one-shot") return;  // It has one average.
  for (const std::size_t apart : {3U, 14U, 23U, 26U}) {
    const std::string to = kStrategies.at((static_cast<std::size_t>(at) + apart) % kStrategies.size());
    if (to.starts_with("streaming")) continue;
    SCOPED_TRACE("to " + to);
    expect_right_ledgers({GetParam(), 1}, [&](SimulatedCluster& cluster) { change(cluster, to); });
    if (to.starts_with("eager")) continue;  // ADR 49: what contents cannot say.
    for (const bool again : {false, true})
      expect_right_ledgers({GetParam(), 2, 100}, [&](SimulatedCluster& cluster) {
        change(cluster, to);
        cluster.run(9ms);
        cluster.kill_worker(NodeId{1}, 0);
        cluster.run(9ms);
        if (again) change(cluster, "allreduce");
      });
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, TheLedgerIsRight, testing::ValuesIn(strategies()));

class TheLedgerIsRightWhereWorkersCome : public testing::TestWithParam<const char*> {};

TEST_P(TheLedgerIsRightWhereWorkersCome, Back) {
  expect_right_ledgers({GetParam(), 1, 100}, [](SimulatedCluster& cluster) { cluster.kill_worker(NodeId{0}, 1); });
}

TEST_P(TheLedgerIsRightWhereWorkersCome, AndGo) {
  expect_right_ledgers({GetParam(), 1, 0, 2}, [](SimulatedCluster& cluster) { scale(cluster, 4); });
  expect_right_ledgers({GetParam(), 2}, [](SimulatedCluster& cluster) { scale(cluster, 2); });
  expect_right_ledgers({GetParam(), 2}, [](SimulatedCluster& cluster) { ask(cluster, "drain", {{"node", 1}}); });
}

/// For a moment nobody is there who has the model; if that was the last who had it the job fails.
TEST_P(TheLedgerIsRightWhereWorkersCome, AndWhoIsToStayIsKilledWhileTheOthersGo) {
  const std::string strategy = GetParam();
  if (strategy.starts_with("eager") || strategy.starts_with("decoupled")) return;  // ADR 49: what contents cannot say.
  for (const Duration between : {1ms, 3ms})
    expect_right_ledgers(
        {GetParam(), 1, 100},
        [between](SimulatedCluster& cluster) {
          scale(cluster, 1);
          cluster.run(between);
          cluster.kill_worker(NodeId{0}, 0);
        },
        100ms);
}

INSTANTIATE_TEST_SUITE_P(Strategies, TheLedgerIsRightWhereWorkersCome, testing::ValuesIn(strategies_of_returns()));

/// Any strategy, on one to three nodes; workers are killed, come back, are asked for and to leave, again and again.
std::string life_with_ledger(std::uint64_t seed, std::uint64_t& happened) {
  std::mt19937_64 random(seed);
  const auto up_to = [&random](std::uint64_t most) { return static_cast<int>(random() % (most + 1)); };
  auto strategies = strategies_of_returns();
  // A late worker takes the newest mean only: what it passed by cannot be told from its contents.
  std::erase_if(strategies, [](const char* name) { return std::string(name).starts_with("eager"); });
  OneHot how;
  how.strategy = strategies.at(random() % strategies.size());
  how.nodes = 1 + up_to(2);
  how.restarts = 100;
  how.begin_with = up_to(1) * (2 + up_to(1));
  std::string did;
  const auto happens = [&](SimulatedCluster& cluster) {
    for (int times = 1 + up_to(4); times > 0; --times) {
      if (const int what = up_to(4); what == 0) {
        const int rank = up_to(3);
        ask(cluster, "drain", {{"worker", rank}});
        did += "drain worker " + std::to_string(rank) + "; ";
      } else if (what <= 2) {
        const int node = up_to(static_cast<std::uint64_t>(how.nodes) - 1), which = up_to(3);
        cluster.kill_worker(NodeId{node}, static_cast<std::uint64_t>(which));
        did += "kill worker " + std::to_string(which) + " of node " + std::to_string(node) + "; ";
      } else {
        const int workers = how.nodes + up_to(4 - static_cast<std::uint64_t>(how.nodes));
        scale(cluster, workers);
        did += "scale to " + std::to_string(workers) + "; ";
      }
      ++happened;
      const auto pause = std::chrono::milliseconds(up_to(25));
      did += "after " + std::to_string(pause.count()) + " ms ";
      cluster.run(pause);
    }
  };
  const auto wrong = wrong_ledger(how, std::chrono::milliseconds(15 + up_to(60)), happens);
  return wrong.empty() ? wrong : std::string(how.strategy) + " on " + std::to_string(how.nodes) + ": " + did + wrong;
}

TEST(LedgerLives, AreCountedRight) {
  expect_to_end_well(200, "kills, and changes of how many are wanted", 1.5, life_with_ledger);
}

}  // namespace
}  // namespace paceline::sim
