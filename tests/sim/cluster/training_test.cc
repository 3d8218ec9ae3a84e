#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/simulate/cluster/simulated_cluster.h"
#include "algorithms/strategy.h"
#include "runtime/base/json.h"
#include "tests/sim/cluster/at_each_moment.h"
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
    auto& driver = begin(cluster);
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

INSTANTIATE_TEST_SUITE_P(Strategies, TrainingTest, testing::ValuesIn(strategies()));

TEST(TrainingAtEachMoment, AWorkerIsKilled) {
  expect_one_model_whenever({.strategy = "allreduce", .evaluate_every = 2, .moments = 120ms, .least = 3},
                            [](SimulatedCluster& cluster) { cluster.kill_worker(NodeId{0}, 0); });
}

/// Its next process comes back in, whatever the others are at, and under every strategy that has returns.
class AWorkerComesBack : public testing::TestWithParam<const char*> {
 protected:
  static AtEachMoment killed(int nodes) {
    return {.strategy = GetParam(),
            .evaluate_every = 6,
            .moments = 90ms,
            .least = 4,
            .nodes = nodes,
            .apart = 7ms,
            .updates = 24,
            .restarts = 100};
  }
};

TEST_P(AWorkerComesBack, KilledAtAnyMoment) {
  for (const int nodes : {1, 2, 4})
    for (const std::uint64_t which : {0U, 1U})
      expect_one_model_whenever(
          killed(nodes), [which, nodes](SimulatedCluster& cluster) { cluster.kill_worker(NodeId{nodes - 1}, which); });
}

/// It dies again while it loads its state, or at its first step.
TEST_P(AWorkerComesBack, KilledAgainAndAgain) {
  for (const Duration between : {1ms, 2ms, 5ms})
    expect_one_model_whenever(killed(2), [between](SimulatedCluster& cluster) {
      for (int i = 0; i < 3; ++i) {
        cluster.kill_worker(NodeId{1}, 0);
        cluster.run(between);
      }
    });
}

/// The one that gives it its state dies, too, or stands still.
TEST_P(AWorkerComesBack, AndWhoGivesItsStateIsKilled) {
  for (const Duration between : {0ms, 1ms, 3ms, 6ms})
    expect_one_model_whenever(killed(1), [between](SimulatedCluster& cluster) {
      cluster.kill_worker(NodeId{0}, 3);
      cluster.run(between);
      cluster.kill_worker(NodeId{0}, 0);
    });
}

TEST_P(AWorkerComesBack, AndWhoGivesItsStateStandsStillForAWhile) {
  for (const Duration between : {0ms, 1ms, 3ms, 6ms})
    expect_one_model_whenever(killed(1), [between](SimulatedCluster& cluster) {
      cluster.kill_worker(NodeId{0}, 3);
      cluster.run(between);
      cluster.freeze_worker(NodeId{0}, 0, true);
      cluster.run(300ms);
      cluster.freeze_worker(NodeId{0}, 0, false);
    });
}

/// When it has its state others go on without it for a while: what it gives first they may all have had.
TEST_P(AWorkerComesBack, AndIsSlow) {
  for (const int nodes : {1, 2}) {
    auto how = killed(nodes);
    how.first = 10ms;
    how.apart = 1ms;
    expect_one_model_whenever(how, [nodes](SimulatedCluster& cluster) {
      const auto it = static_cast<std::uint64_t>(4 / nodes - 1);
      cluster.kill_worker(NodeId{nodes - 1}, 0);
      cluster.run(8ms);
      cluster.freeze_worker(NodeId{nodes - 1}, it, true);
      cluster.run(30ms);
      cluster.freeze_worker(NodeId{nodes - 1}, it, false);
    });
  }
}

/// All but one.
TEST_P(AWorkerComesBack, AsManyDo) {
  for (const Duration between : {0ms, 4ms})
    expect_one_model_whenever(killed(1), [between](SimulatedCluster& cluster) {
      for (const std::uint64_t which : {3U, 2U, 1U}) {
        cluster.kill_worker(NodeId{0}, which);
        cluster.run(between);
      }
    });
}

/// If all do, nobody has the model any more: the job fails, and does not wait.
TEST_P(AWorkerComesBack, ButNotWhenAllAreKilledAtOnce) {
  for (const int nodes : {1, 2, 4}) {
    SimulatedCluster cluster({.nodes = nodes});
    auto& driver = begin(cluster);
    Training training;
    training.updates = 1000;
    const auto& job =
        driver.submit(json{{"strategy", GetParam()}, {"workers", 4}, {"seed", 1}, {"restarts", 100}}, training);
    cluster.run(50ms);
    for (int node = 0; node < nodes; ++node)
      for (int i = 0; i < 4 / nodes; ++i) cluster.kill_worker(NodeId{node}, static_cast<std::uint64_t>(i));
    cluster.run(3s);
    EXPECT_THAT(job.failure, testing::HasSubstr("nobody is left who has the model")) << nodes << " nodes";
    EXPECT_TRUE(driver.is_over(job)) << driver.state_of(job);
  }
}

/// Nor when the last one that has it dies a moment later: it ends, well or not.
TEST_P(AWorkerComesBack, AndAllAreKilledOneAfterTheOther) {
  for (const int nodes : {1, 4})
    for (Duration between = 100us; between < 5ms; between += kCoarser * 100us) {
      SimulatedCluster cluster({.nodes = nodes});
      auto& driver = begin(cluster);
      Training training;
      training.updates = 200;
      const auto& job =
          driver.submit(json{{"strategy", GetParam()}, {"workers", 4}, {"seed", 1}, {"restarts", 100}}, training);
      cluster.run(50ms);
      for (int i = 0; i < 4; ++i) {
        cluster.kill_worker(NodeId{i * nodes / 4}, 0);
        cluster.run(between);
      }
      for (int i = 0; i < 100 && !driver.is_over(job); ++i) cluster.run(100ms);
      EXPECT_TRUE(driver.is_over(job)) << nodes << " nodes, " << seconds(between) << " s: " << driver.state_of(job)
                                       << "; " << texts_of(job);
    }
}

/// And a node is lost meanwhile, or has been.
TEST_P(AWorkerComesBack, AndANodeIsLost) {
  for (const bool before : {false, true}) {
    auto how = killed(4);
    how.least = 3;
    expect_one_model_whenever(how, [before](SimulatedCluster& cluster) {
      if (before) cluster.kill_agent(NodeId{2});
      cluster.kill_worker(NodeId{1}, 0);
      cluster.run(2ms);
      if (!before) cluster.kill_agent(NodeId{2});
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, AWorkerComesBack, testing::ValuesIn(strategies_of_returns()));

/// The next one that leads says it to those who have not heard.
TEST(TrainingAtEachMoment, TheLeaderIsLostWhenOnlySomeHaveHeardThatTheyMayGoOn) {
  for (const char* const strategy : {"allreduce", "local-sgd(period=2)"})
    expect_one_model_whenever({.strategy = strategy,
                               .evaluate_every = 2,
                               .moments = 60ms,
                               .least = 2,
                               .nodes = 3,
                               .first = 12ms,
                               .driver = NodeId{1}},
                              [](SimulatedCluster& cluster) {
                                cluster.cut_one_way(NodeId{0}, NodeId{2}, true);
                                cluster.run(2ms);
                                cluster.kill_agent(NodeId{0});
                                cluster.cut_one_way(NodeId{0}, NodeId{2}, false);
                              });
}

TEST(TrainingAtEachMoment, AWorkerStandsStillForAWhile) {
  expect_one_model_whenever({.strategy = "local-sgd(period=4,late=skip,grace=2x)", .moments = 100ms, .least = 4},
                            [](SimulatedCluster& cluster) {
                              cluster.freeze_worker(NodeId{1}, 0, true);
                              cluster.run(60ms);
                              cluster.freeze_worker(NodeId{1}, 0, false);
                            });
}

/// From before it has opened its share, or in the middle, and longer than a job takes whose others do not wait: it gets
/// their model all the same.
class AWorkerStandsStillForLong : public testing::TestWithParam<const char*> {};

TEST_P(AWorkerStandsStillForLong, AndAllEndWithOneModel) {
  expect_one_model_whenever(
      {.strategy = GetParam(), .evaluate_every = 4, .moments = 2ms, .least = 4, .apart = 40us, .first = 0ms},
      [](SimulatedCluster& cluster) {
        cluster.freeze_worker(NodeId{1}, 0, true);
        cluster.run(300ms);
        cluster.freeze_worker(NodeId{1}, 0, false);
      });
}

INSTANTIATE_TEST_SUITE_P(Strategies, AWorkerStandsStillForLong, testing::ValuesIn(strategies()));

/// Steps of some 10 ms, of which some take seconds, none 5: who is in one at the end is waited for, since it answers.
TEST(TrainingAtItsEnd, WhoComputesIsNotLeftBehind) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SimulatedCluster cluster({.nodes = 2, .seed = seed});
    auto& driver = begin(cluster);
    Training training;
    training.updates = 12;
    training.compute = "lognormal(10ms,1.5)";
    training.seed = seed;
    const auto& job = driver.submit(
        json{{"strategy", "local-sgd(period=4,late=skip,grace=2x)"}, {"workers", 4}, {"seed", seed}}, training);
    for (int i = 0; i < 200 && !driver.is_over(job); ++i) cluster.run(100ms);
    EXPECT_TRUE(driver.is_over(job));
    EXPECT_EQ(cluster.trained().size(), 4u) << "seed " << seed << ": " << driver.state_of(job);
  }
}

/// Those of the other nodes go on, under every strategy, whatever the lost one had given to whom.
class ANodeIsLost : public testing::TestWithParam<const char*> {};

AtEachMoment one_of_so_many_is_lost(const char* strategy, int nodes) {
  return {.strategy = strategy,
          .evaluate_every = 4,
          .moments = 120ms,
          .least = static_cast<std::size_t>(nodes == 4 ? 3 : 2),
          .nodes = nodes,
          .apart = 7ms};
}

TEST_P(ANodeIsLost, AtEachMoment) {
  for (const int nodes : {2, 3, 4})
    expect_one_model_whenever(one_of_so_many_is_lost(GetParam(), nodes),
                              [nodes](SimulatedCluster& cluster) { cluster.kill_agent(NodeId{nodes - 1}); });
}

/// What it gave has come to some, and not to others.
TEST_P(ANodeIsLost, WhileNotAllHaveHeardIt) {
  for (const int nodes : {3, 4})
    expect_one_model_whenever({.strategy = GetParam(),
                               .evaluate_every = 4,
                               .moments = 120ms,
                               .least = static_cast<std::size_t>(nodes - 1),
                               .nodes = nodes,
                               .apart = 8ms},
                              [nodes](SimulatedCluster& cluster) {
                                const NodeId lost{nodes - 1};
                                for (const int deaf : {1, 2})
                                  if (deaf < nodes - 1) cluster.cut_one_way(lost, NodeId{deaf}, true);
                                cluster.run(12ms);
                                cluster.kill_agent(lost);
                              });
}

/// What the first had passed on before it ended itself reaches all that are left, or nobody.
TEST_P(ANodeIsLost, AndAnotherOneMeanwhile) {
  for (const Duration between : {1ms, 4ms, 30ms})
    expect_one_model_whenever(
        {.strategy = GetParam(), .evaluate_every = 4, .moments = 120ms, .least = 2, .nodes = 4, .apart = 19ms},
        [between](SimulatedCluster& cluster) {
          cluster.kill_agent(NodeId{3});
          cluster.run(between);
          cluster.kill_agent(NodeId{1});
        });
}

/// By then worker 0 has given the others the model that they start from.
constexpr Duration kStarted = 12ms;

/// The one that leads: the next one goes on with what it was to see to.
TEST_P(ANodeIsLost, AndItIsTheFirst) {
  for (const int nodes : {2, 3, 4}) {
    auto how = one_of_so_many_is_lost(GetParam(), nodes);
    how.first = kStarted;
    how.driver = NodeId{nodes - 1};
    expect_one_model_whenever(how, [](SimulatedCluster& cluster) { cluster.kill_agent(NodeId{0}); });
  }
}

/// It goes on through another agent, which may be lost as well, while it hears of that or later.
TEST_P(ANodeIsLost, AndItIsTheDrivers) {
  for (const NodeId driver : {NodeId{0}, NodeId{1}})
    for (const Duration until_the_next : {0ms, 1ms, 40ms}) {
      auto how = one_of_so_many_is_lost(GetParam(), 4);
      how.apart = 19ms;
      how.first = kStarted;
      how.driver = driver;
      how.least = 2;
      expect_one_model_whenever(how, [driver, until_the_next](SimulatedCluster& cluster) {
        cluster.kill_agent(driver);
        if (until_the_next == 0ms) return;
        cluster.run(until_the_next);
        cluster.kill_agent(NodeId{driver.value + 1});
      });
    }
}

/// What it had decided has come to some, and not to others; and the next one may end as well.
TEST_P(ANodeIsLost, AndItIsTheFirstWhileNotAllHaveHeardIt) {
  for (const bool twice : {false, true})
    expect_one_model_whenever({.strategy = GetParam(),
                               .evaluate_every = 4,
                               .moments = 120ms,
                               .least = twice ? 2U : 3U,
                               .nodes = 4,
                               .apart = 8ms,
                               .first = kStarted,
                               .driver = NodeId{3}},
                              [twice](SimulatedCluster& cluster) {
                                cluster.cut_one_way(NodeId{0}, NodeId{1}, true);
                                cluster.run(12ms);
                                cluster.kill_agent(NodeId{0});
                                if (!twice) return;
                                cluster.run(3ms);
                                cluster.kill_agent(NodeId{1});
                              });
}

INSTANTIATE_TEST_SUITE_P(Strategies, ANodeIsLost, testing::ValuesIn(strategies()));

/// Of four workers 2 and 3 are lost: 0 would give to 1, and 1 to nobody. Those that are left get a graph of their own.
TEST(PushSum, GoesOnWhereItWouldRunDry) {
  for (const char* strategy : {"sgp", "sgp(hops=base)", "sgp(peers=2)", "osgp", "osgp(bound=3)"}) {
    expect_one_model_whenever(
        {.strategy = strategy, .evaluate_every = 20, .moments = 60ms, .least = 2, .apart = 7ms, .updates = 400},
        [](SimulatedCluster& cluster) { cluster.kill_agent(NodeId{1}); });
    for (const std::uint64_t first : {0U, 1U})
      expect_one_model_whenever(
          {.strategy = strategy, .moments = 60ms, .least = 2, .nodes = 1, .apart = 13ms, .updates = 150},
          [first](SimulatedCluster& cluster) {
            cluster.kill_worker(NodeId{0}, first + 1);
            cluster.run(9ms);
            cluster.kill_worker(NodeId{0}, 1);
          });
    expect_one_model_whenever({.strategy = strategy,
                               .evaluate_every = 20,
                               .moments = 60ms,
                               .least = 1,
                               .nodes = 4,
                               .apart = 7ms,
                               .updates = 150},
                              [](SimulatedCluster& cluster) {
                                for (const int node : {3, 1, 2}) {
                                  cluster.kill_agent(NodeId{node});
                                  cluster.run(15ms);
                                }
                              });
  }
}

/// While a graph is agreed on, one that was asked is lost.
TEST(PushSum, AgreesOnAGraphWithoutOneThatDoesNotAnswer) {
  for (Duration between{}; between < 12ms; between += 500us)
    expect_one_model_whenever({.strategy = "sgp", .moments = 1ms, .least = 1, .nodes = 4, .updates = 150},
                              [between](SimulatedCluster& cluster) {
                                for (const int node : {3, 2}) cluster.kill_agent(NodeId{node});
                                cluster.run(between);
                                cluster.freeze(NodeId{1}, true);
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
    submit(harder_ ? node() : NodeId{0});
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
      if (const auto wrong = differing_averages(one.strategy, one.job->training.job, cluster_); !wrong.empty())
        note(wrong);
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
    NodeId node;
    const SimulatedDriver::Job* job;
    std::string strategy;
    bool is_scaled = false;  ///< It may have fewer than four workers.
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
    training.updates = number(4) == 0 ? 120 : 40;
    training.compute = "uniform(2ms,8ms)";
    training.evaluate_every = number(4) == 0 ? -1 : 10;
    training.seed = number(1000);
    const std::string strategy = kStrategies.at(number(kStrategies.size()));
    const bool come_back = algorithms::workers_come_back(*algorithms::parse_strategy(strategy, 4), 4);
    const int restarts = come_back && number(2) == 0 ? 2 + static_cast<int>(number(100)) : 0;
    const bool is_scaled = come_back && number(2) == 0;
    json options{{"strategy", strategy}, {"workers", 4}, {"seed", 1}, {"patience_s", 3.0}, {"restarts", restarts}};
    if (is_scaled) options["begin_with"] = number(5);
    jobs_.push_back({driver, node, &driver->submit(std::move(options), training), strategy, is_scaled});
  }

  /// From any node, as a user does.
  void scale() {
    const Submitted& one = jobs_.at(number(jobs_.size()));
    const json body{{"job", one.job->training.job}, {"workers", number(6)}};
    auto* const driver = one.is_scaled ? cluster_.start_driver(node()) : nullptr;
    if (driver == nullptr) return;
    cluster_.run(5ms);
    if (!driver->is_gone()) (void)driver->request("scale", json_text(body));
  }

  void do_something() {
    const auto what = number(100);
    if (what < 4) {
      const NodeId at = node();
      killed_workers_[at] += cluster_.kill_worker(at, number(100)) ? 1 : 0;
      return;
    }
    if (what < 10) return void(cluster_.freeze_worker(node(), number(100), number(2) == 0));
    if (what < 12) return cluster_.kill_head();
    if (what < 16) return cluster_.freeze_head(number(2) == 0);
    if (what > 97) {
      cluster_.fill_disk(number(2) == 0);
      disk_was_full_ = true;
      return;
    }
    if (what > 90) return scale();
    if (!harder_) return;
    if (what < 18) {
      const NodeId killed = node();
      killed_.insert(killed);
      return cluster_.kill_agent(killed);
    }
    if (what < 22) return cluster_.freeze(node(), number(2) == 0);
    if (what < 26 && nodes_ > 1) {
      const NodeId a = node(), b = node();
      const bool apart = number(2) == 0;
      if (a != b) number(3) == 0 ? cluster_.cut_one_way(a, b, apart) : cluster_.partition(a, b, apart);
    }
  }

  /// Each node was killed, or lost to the job or its driver, or as many workers on it killed as it has of the job's
  /// four, or may have had. `said`: how the workers' calls ended, too.
  bool all_may_be_lost(const Submitted& job, const std::string& said) const {
    std::map<NodeId, int> left;
    for (int rank = 0; rank < 4; ++rank) ++left[NodeId{rank * nodes_ / 4}];
    return std::all_of(left.begin(), left.end(), [&](const auto& one) {
      const auto killed = killed_workers_.find(one.first);
      return killed_.contains(one.first) ||
             said.find("node " + to_string(one.first) + " is gone") != std::string::npos ||
             (killed != killed_workers_.end() && killed->second >= (job.is_scaled ? 1 : one.second));
    });
  }

  void check(const Submitted& one) {
    const auto& job = *one.job;
    if (!one.driver->is_over(job)) return note("no end: " + one.driver->state_of(job));
    const auto said = one.driver->state_of(job);  // Also of each worker: what was just being begun may be lost.
    const bool may_fail = job.failure.find("before") != std::string::npos || all_may_be_lost(one, said) ||
                          said.find("agent before node") != std::string::npos ||
                          said.find("has never had this call") != std::string::npos;
    if (!job.failure.empty() && !may_fail) note(one.strategy + " has failed: " + one.driver->state_of(job));
    if (!job.failure.empty()) return;
    const Trained* first = nullptr;
    for (const auto& worker : cluster_.trained()) {
      if (worker.job != job.training.job || worker.has_left) continue;
      if (!worker.trouble.empty()) {  // Of a node that was lost to the job: nobody has told it there of the job.
        const bool came_too_late = worker.trouble.find("has left the job: it has ended") != std::string::npos;
        if (!harder_ && !came_too_late) note("worker " + std::to_string(worker.rank) + ": " + worker.trouble);
        continue;
      }
      if (one.is_scaled && worker.updates == 0) continue;  // It had no model yet when the job was over.
      const bool was_lost = job.ever_lost.contains(job.places.node_of(worker.rank));
      if (was_lost && worker.updates < job.training.updates) continue;  // It was told that its part is over.
      if (first == nullptr) first = &worker;
      if (worker.model != first->model)
        note(one.strategy + ": workers " + std::to_string(first->rank) + " and " + std::to_string(worker.rank) +
             " end with other models: " + testing::PrintToString(first->model) + " after " +
             std::to_string(first->updates) + " updates, " + testing::PrintToString(worker.model) + " after " +
             std::to_string(worker.updates) + "; " + texts_of(job));
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

  /// Whatever heads were killed, and when: what its driver has said of it. A head that dies while the disk is full
  /// forgets it.
  void check_outcome(const Submitted& one, const json& over) {
    if (disk_was_full_ || one.driver->is_gone() || one.job->refused) return;
    const auto id = one.job->training.job;
    const auto row = std::find_if(over.begin(), over.end(), [&](const json& each) { return each.at("job") == id; });
    const char* const expected = one.job->failure.empty() ? "ended" : "failed";
    if (row == over.end() || row->at("state") != expected)
      note("job " + std::to_string(id) + " stands as " + (row == over.end() ? "nothing" : json_text(*row)) + ": " +
           one.driver->state_of(*one.job));
  }

  /// Of jobs that are over no agent has a part. (What a status holds differs, as memory does.)
  void check_that_nothing_is_left() {
    cluster_.run(5s);
    // Who was at an agent that was lost may not know of a job that it had asked for.
    if (std::any_of(jobs_.begin(), jobs_.end(),
                    [](const Submitted& one) { return one.driver->is_gone() || one.job->refused; }))
      cluster_.run(cluster::JobDirectory::kDriverPatience);
    auto* const driver = cluster_.start_driver(NodeId{0});
    cluster_.run(20ms);
    const auto request = driver->request("status", R"({"jobs_over": true})");
    cluster_.run(5s);
    const auto& reply = driver->requests().at(request).reply;
    if (!reply || !*reply) return note("no status");
    const auto status = parse_json(**reply);
    if (!status.at("jobs").empty()) note("left: " + json_text(status.at("jobs")).substr(0, 3000));
    for (const auto& one : jobs_) check_outcome(one, status.at("jobs_over"));
  }

  std::mt19937_64 random_;
  const bool harder_;
  std::set<NodeId> killed_;               // Whose agents were,
  std::map<NodeId, int> killed_workers_;  // and so many workers there.
  bool disk_was_full_ = false;
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
  for (std::uint64_t seed = 1; seed <= (kSanitized ? 2 : 10); ++seed) {
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
