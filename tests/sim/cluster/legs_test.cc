#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "algorithms/simulate/cluster/simulated_cluster.h"
#include "runtime/base/json.h"
#include "runtime/base/test_directory.h"
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

void set(SimulatedCluster& cluster, const std::string& strategy) { ask(cluster, "set", {{"strategy", strategy}}); }

/// A job of four workers, which is changed while it runs.
struct Changed {
  std::string from = "allreduce";
  int nodes = 1;
  int restarts = 0;
  int begin_with = 0;
  std::int64_t updates = 40;
  std::int64_t evaluate_every = -1;
  std::size_t least = 1;  ///< Workers that end with the job's model.
  NodeId driver{0};
};

std::vector<json> events(const SimulatedDriver::Job& job, const char* kind) {
  std::vector<json> all;
  std::copy_if(job.news.begin(), job.news.end(), std::back_inserter(all),
               [&](const json& event) { return event.value("event", "") == kind; });
  return all;
}

/// What was told of it, so often.
struct Told {
  std::size_t changes = 0, nodes_joined = 0, joins = 0;
};

/// It ends as one that nobody changes: all have done all updates, and have one model. What is wrong; empty: nothing.
std::string wrong(const Changed& how, Duration moment, const std::function<void(SimulatedCluster&)>& happens,
                  Told* seen = nullptr) {
  SimulatedCluster cluster({.nodes = how.nodes});
  auto& driver = begin(cluster, how.driver);
  Training training;
  training.updates = how.updates;
  training.evaluate_every = how.evaluate_every;
  const auto& job = driver.submit(
      {{"strategy", how.from}, {"workers", 4}, {"seed", 1}, {"restarts", how.restarts}, {"begin_with", how.begin_with}},
      training);
  cluster.run(moment);
  happens(cluster);
  for (int i = 0; i < 300 && !driver.is_over(job); ++i) cluster.run(100ms);
  const auto told = events(job, "changed");
  if (seen != nullptr) {
    seen->changes += told.size();
    seen->nodes_joined += events(job, "node_joined").size();
    seen->joins += events(job, "returned").size();
  }
  std::string when = " (" + driver.state_of(job) + "; " + texts_of(job) + ")";
  if (!driver.is_over(job)) return "it does not end" + when;
  if (!job.failure.empty()) return job.failure + when;
  std::vector<simulate::Trained> ended;  // But who comes to a job that has ended, and who was asked to leave.
  for (const auto& one : cluster.trained())
    if (!has_left(job, one) && ((how.restarts == 0 && how.begin_with == 0) || one.trouble.empty()))
      ended.push_back(one);
  if (ended.size() < how.least) return std::to_string(ended.size()) + " have ended with it" + when;
  for (const auto& one : ended) {
    if (one.model != ended.front().model) return "other models" + when;
    if (!one.trouble.empty()) return one.trouble + when;
  }
  for (const double x : ended.front().model)
    if (!(std::abs(x) < 10)) return "a model of " + std::to_string(x) + when;
  std::map<std::int64_t, std::vector<double>> began_with;
  for (const auto& one : cluster.trained())
    for (const auto& [update, model] : one.began_with)
      if (began_with.try_emplace(update, model).first->second != model)
        return "worker " + std::to_string(one.rank) + " begins update " + std::to_string(update) +
               " with another model" + when;
  std::int64_t evaluated = 0;
  for (const auto& event : events(job, "evaluated")) {
    if (event.value("update", std::int64_t{0}) <= evaluated) return "evaluated twice: " + event.dump() + when;
    evaluated = event.value("update", std::int64_t{0});
  }
  std::int64_t first = 0;
  for (const auto& event : told) {
    if (event.value("update", std::int64_t{0}) <= first) return "no later leg: " + event.dump() + when;
    first = event.value("update", std::int64_t{0});
  }
  return {};
}

bool can_be_changed(const std::string& strategy) { return strategy != "one-shot"; }

/// From every strategy to every other.
class TheStrategyIsChanged : public testing::TestWithParam<const char*> {
 protected:
  /// Some other one, each of some other.
  static std::string other(std::size_t apart) {
    const auto at = std::find(kStrategies.begin(), kStrategies.end(), std::string(GetParam())) - kStrategies.begin();
    return kStrategies.at((static_cast<std::size_t>(at) + apart) % kStrategies.size());
  }
  /// At each moment from when somebody wants it on.
  static void expect_none_wrong(const Changed& how, const std::string& to, Duration until,
                                const std::function<void(SimulatedCluster&, Duration)>& happens) {
    if (!can_be_changed(how.from)) return;
    for (Duration after{}; after < until; after += kCoarser * 1ms)
      EXPECT_EQ(wrong(how, 25ms,
                      [&](SimulatedCluster& cluster) {
                        set(cluster, to);
                        happens(cluster, after);
                      }),
                "")
          << how.from << " to " << to << " on " << how.nodes << " nodes, " << seconds(after)
          << " s after it was asked for";
  }
};

TEST_P(TheStrategyIsChanged, ToAnyOther) {
  std::size_t pairs = 0;
  Told seen;
  for (std::size_t i = 0; i < kStrategies.size(); i += kSanitized ? 11 : 1) {
    const std::string to = kStrategies.at(i);
    if (to == GetParam()) continue;
    const int nodes = 1 + static_cast<int>(i % 3);
    ++pairs;
    EXPECT_EQ(wrong(
                  {.from = GetParam(), .nodes = nodes, .evaluate_every = 6, .least = 4},
                  std::chrono::milliseconds(20 + 3 * i), [&](SimulatedCluster& cluster) { set(cluster, to); }, &seen),
              "")
        << GetParam() << " to " << to << " on " << nodes;
  }
  EXPECT_EQ(seen.changes, can_be_changed(GetParam()) ? pairs : 0);
}

TEST_P(TheStrategyIsChanged, AndAWorkerIsKilled) {
  expect_none_wrong({.from = GetParam(), .nodes = 2, .restarts = 100}, other(7), 24ms,
                    [](SimulatedCluster& cluster, Duration after) {
                      cluster.run(after);
                      cluster.kill_worker(NodeId{0}, 1);
                    });
}

TEST_P(TheStrategyIsChanged, AndAllOfANodeAreKilledForGood) {
  expect_none_wrong({.from = GetParam(), .nodes = 2, .least = 2}, other(11), 24ms,
                    [](SimulatedCluster& cluster, Duration after) {
                      cluster.run(after);
                      for (const std::uint64_t which : {0U, 0U}) cluster.kill_worker(NodeId{1}, which);
                    });
}

TEST_P(TheStrategyIsChanged, AndANodeIsLost) {
  for (const NodeId lost : {NodeId{0}, NodeId{2}})
    expect_none_wrong({.from = GetParam(), .nodes = 3, .evaluate_every = 4, .least = 2, .driver = NodeId{1}}, other(5),
                      24ms, [lost](SimulatedCluster& cluster, Duration after) {
                        cluster.run(after);
                        cluster.kill_agent(lost);
                      });
}

TEST_P(TheStrategyIsChanged, AndTheHeadIsKilled) {
  expect_none_wrong({.from = GetParam(), .nodes = 2, .least = 4}, other(3), 8ms,
                    [](SimulatedCluster& cluster, Duration after) {
                      cluster.run(after);
                      cluster.kill_head();
                    });
}

TEST_P(TheStrategyIsChanged, AgainAndAgain) {
  for (const Duration between : {0ms, 1ms, 5ms, 40ms})
    expect_none_wrong({.from = GetParam(), .nodes = 2, .updates = 80, .least = 4}, other(9), 2ms,
                      [&](SimulatedCluster& cluster, Duration after) {
                        for (const std::size_t apart : {13U, 4U, 21U}) {
                          cluster.run(between + after);
                          if (other(apart) != "one-shot") set(cluster, other(apart));
                        }
                      });
}

/// Workers come and go meanwhile.
TEST_P(TheStrategyIsChanged, AndPlacesAreTakenAndGivenUp) {
  const auto comes_back = [](const std::string& strategy) {
    return algorithms::workers_come_back(*algorithms::parse_strategy(strategy, 4), 4);
  };
  if (!comes_back(GetParam())) return;
  for (const bool grows : {true, false})
    expect_none_wrong({.from = GetParam(), .nodes = 2, .begin_with = grows ? 2 : 0, .least = 2}, other(6), 16ms,
                      [grows](SimulatedCluster& cluster, Duration after) {
                        cluster.run(after);
                        scale(cluster, grows ? 4 : 2);
                      });
}

INSTANTIATE_TEST_SUITE_P(Strategies, TheStrategyIsChanged, testing::ValuesIn(strategies()));

/// A node is lost, and its agent started again: its workers join with the job's next leg.
class ANodeComesBack : public testing::TestWithParam<const char*> {
 protected:
  /// But where agents carry models.
  static bool does() { return can_be_changed(GetParam()) && !std::string(GetParam()).starts_with("decoupled-diloco"); }
  /// Its agent is killed at each moment.
  static void expect_none_wrong(NodeId lost, std::int32_t nodes, NodeId driver) {
    if (!does()) return;
    const Changed how{.from = GetParam(),
                      .nodes = nodes,
                      .restarts = 100,
                      .updates = 150,
                      .evaluate_every = 20,
                      .least = 2,
                      .driver = driver};
    Told seen;
    std::size_t times = 0;
    for (Duration after{}; after < 60ms; after += kCoarser * 2ms, ++times)
      EXPECT_EQ(wrong(
                    how, 20ms + after, [&](SimulatedCluster& cluster) { cluster.kill_agent(lost); }, &seen),
                "")
          << GetParam() << ": node " << to_string(lost) << " of " << nodes << ", " << seconds(after) << " s after";
    EXPECT_GE(seen.nodes_joined, times) << GetParam();
    EXPECT_GE(seen.joins, times) << GetParam();
  }

  static std::string another() {
    return std::string(GetParam()) == "wagma(group=2,sync=4)" ? "allreduce" : "wagma(group=2,sync=4)";
  }
  using Happening = std::pair<const char*, std::function<void(SimulatedCluster&)>>;
  /// Each of them at each moment once the node is there; where not each moment is looked at, under each strategy each
  /// `every`-th.
  static void expect_none_wrong(const Changed& how, const std::vector<Happening>& all, std::size_t every,
                                const std::function<void(SimulatedCluster&)>& make_it_be_there) {
    Told seen;
    const auto at = std::find(kStrategies.begin(), kStrategies.end(), std::string(GetParam())) - kStrategies.begin();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (kCoarser > 1 && i % every != static_cast<std::size_t>(at) % every) continue;
      const auto& [what, happens] = all[i];
      for (Duration after{}; after < 40ms; after += kCoarser * 1ms)
        EXPECT_EQ(wrong(
                      how, 20ms,
                      [&, &then = happens](SimulatedCluster& cluster) {
                        make_it_be_there(cluster);
                        cluster.run(after);
                        then(cluster);
                      },
                      &seen),
                  "")
            << GetParam() << ": " << what << " " << seconds(after) << " s after it is there";
    }
    EXPECT_GT(seen.nodes_joined, 0u) << GetParam();
  }
};

TEST_P(ANodeComesBack, AndItsWorkersJoin) {
  for (const std::int32_t nodes : {2, 3}) expect_none_wrong(NodeId{nodes - 1}, nodes, NodeId{0});
}

TEST_P(ANodeComesBack, ThatWhichLed) { expect_none_wrong(NodeId{0}, 3, NodeId{1}); }

TEST_P(ANodeComesBack, ThatOfTheDriver) {
  for (const std::int32_t lost : {0, 2}) expect_none_wrong(NodeId{lost}, 3, NodeId{lost});
}

/// At each moment from when its agent is there again on.
TEST_P(ANodeComesBack, Whatever) {
  if (!does()) return;
  const std::string to = another();
  const std::vector<Happening> all{
      {"it is lost again", [](SimulatedCluster& cluster) { cluster.kill_agent(NodeId{2}); }},
      {"another one is lost", [](SimulatedCluster& cluster) { cluster.kill_agent(NodeId{0}); }},
      {"the head is killed", [](SimulatedCluster& cluster) { cluster.kill_head(); }},
      {"a worker is killed", [](SimulatedCluster& cluster) { cluster.kill_worker(NodeId{0}, 0); }},
      {"one that joins is killed", [](SimulatedCluster& cluster) { cluster.kill_worker(NodeId{2}, 0); }},
      {"the strategy is changed", [&to](SimulatedCluster& cluster) { set(cluster, to); }},
      {"the strategy is changed and it is lost again",
       [&to](SimulatedCluster& cluster) {
         set(cluster, to);
         cluster.run(1ms);
         cluster.kill_agent(NodeId{2});
       }},
      {"fewer are wanted", [](SimulatedCluster& cluster) { scale(cluster, 3); }},
      {"it is drained", [](SimulatedCluster& cluster) {
         ask(cluster, "drain", {{"node", 2}});
       }}};
  const Changed how{.from = GetParam(),
                    .nodes = 3,
                    .restarts = 100,
                    .updates = 150,
                    .evaluate_every = 3,  // It may be due where a leg ends.
                    .least = 1,
                    .driver = NodeId{1}};
  expect_none_wrong(how, all, 4, [](SimulatedCluster& cluster) {
    cluster.kill_agent(NodeId{2});
    cluster.run(60ms);
  });
}

INSTANTIATE_TEST_SUITE_P(Strategies, ANodeComesBack, testing::ValuesIn(strategies_of_returns()));

/// A node that is new to the cluster gets places of a job that wants more workers, and those join there.
class ANodeIsAdded : public ANodeComesBack {
 protected:
  static Changed of_two(int nodes) {
    return {.from = GetParam(),
            .nodes = nodes,
            .restarts = 100,
            .begin_with = 2,
            .updates = 150,
            .evaluate_every = 20,
            .least = 1};
  }
  static void add(SimulatedCluster& cluster) {
    cluster.add_node();
    cluster.run(10ms);
    scale(cluster, 4);
  }
};

TEST_P(ANodeIsAdded, AndWorkersJoinThere) {
  if (!does()) return;
  for (const int nodes : {1, 2}) {
    auto how = of_two(nodes);
    how.least = 4;
    Told seen;
    std::size_t times = 0;
    for (Duration after{}; after < 60ms; after += kCoarser * 2ms, ++times)
      EXPECT_EQ(wrong(how, 20ms + after, add, &seen), "")
          << GetParam() << " on " << nodes << " nodes, " << seconds(after) << " s after";
    EXPECT_EQ(seen.nodes_joined, times) << GetParam();
    EXPECT_EQ(seen.joins, 2 * times) << GetParam();
  }
}

/// The places of a node that does not come back are its.
TEST_P(ANodeIsAdded, InPlaceOfOneThatIsLost) {
  if (!does()) return;
  for (const std::int32_t lost : {0, 1}) {
    auto how = of_two(2);
    how.begin_with = how.restarts = 0;
    how.least = 2;
    how.driver = NodeId{1 - lost};
    Told seen;
    std::size_t times = 0;
    for (Duration after{}; after < 60ms; after += kCoarser * 2ms, ++times)
      EXPECT_EQ(wrong(
                    how, 20ms + after,
                    [lost](SimulatedCluster& cluster) {
                      cluster.kill_agent(NodeId{lost});
                      cluster.run(30ms);
                      cluster.add_node();
                      cluster.run(30ms);
                      scale(cluster, 4);
                    },
                    &seen),
                "")
          << GetParam() << " without node " << lost << ", " << seconds(after) << " s after";
    EXPECT_EQ(seen.nodes_joined, times) << GetParam();
    EXPECT_EQ(seen.joins, 2 * times) << GetParam();
  }
}

TEST_P(ANodeIsAdded, Whatever) {
  if (!does()) return;
  const std::string to = another();
  const std::vector<Happening> all{
      {"it is lost", [](SimulatedCluster& cluster) { cluster.kill_agent(NodeId{2}); }},
      {"another one is lost", [](SimulatedCluster& cluster) { cluster.kill_agent(NodeId{0}); }},
      {"that of the driver is lost", [](SimulatedCluster& cluster) { cluster.kill_agent(NodeId{1}); }},
      {"the head is killed", [](SimulatedCluster& cluster) { cluster.kill_head(); }},
      {"a worker is killed", [](SimulatedCluster& cluster) { cluster.kill_worker(NodeId{0}, 0); }},
      {"one that joins is killed", [](SimulatedCluster& cluster) { cluster.kill_worker(NodeId{2}, 0); }},
      {"the strategy is changed", [&to](SimulatedCluster& cluster) { set(cluster, to); }},
      {"another one is added", [](SimulatedCluster& cluster) { cluster.add_node(); }},
      {"fewer are wanted", [](SimulatedCluster& cluster) { scale(cluster, 3); }},
      {"an old one is drained", [](SimulatedCluster& cluster) {
         ask(cluster, "drain", {{"node", 1}});
       }}};
  auto how = of_two(2);
  how.evaluate_every = 3;
  how.driver = NodeId{1};
  expect_none_wrong(how, all, 5, add);
}

INSTANTIATE_TEST_SUITE_P(Strategies, ANodeIsAdded, testing::ValuesIn(strategies_of_returns()));

/// The node that leads is drained: its last worker leaves with it when a leg has ended, and the next node leads.
class TheLeaderIsDrained : public ANodeComesBack {
 protected:
  static Changed of_four(int nodes, int begin_with) {
    return {.from = GetParam(),
            .nodes = nodes,
            .restarts = 100,
            .begin_with = begin_with,
            .updates = 150,
            .evaluate_every = 3,
            .least = 2};
  }
  static void drain(SimulatedCluster& cluster) { ask(cluster, "drain", {{"node", 0}}); }
};

TEST_P(TheLeaderIsDrained, AndTheNextOneLeads) {
  if (!does()) return;
  for (const int nodes : {2, 3}) {
    for (const std::int32_t driver : {0, 1}) {
      auto how = of_four(nodes, nodes == 2 ? 0 : 3);
      how.driver = NodeId{driver};
      Told seen;
      std::size_t times = 0;
      for (Duration after{}; after < 60ms; after += kCoarser * 4ms, ++times)
        EXPECT_EQ(wrong(how, 20ms + after, drain, &seen), "")
            << GetParam() << " on " << nodes << " nodes, driver on " << driver << ", " << seconds(after) << " s after";
      EXPECT_EQ(seen.nodes_joined, times) << GetParam() << ": it says that it has got places";
      EXPECT_EQ(seen.joins, (nodes == 2 ? 2 : 1) * times) << GetParam() << ": there are places for them now";
    }
  }
}

TEST_P(TheLeaderIsDrained, Whatever) {
  if (!does()) return;
  const std::string to = another();
  const std::vector<Happening> all{
      {"it is lost", [](SimulatedCluster& cluster) { cluster.kill_agent(NodeId{0}); }},
      {"the one that is to lead is lost", [](SimulatedCluster& cluster) { cluster.kill_agent(NodeId{1}); }},
      {"another one is lost", [](SimulatedCluster& cluster) { cluster.kill_agent(NodeId{2}); }},
      {"the head is killed", [](SimulatedCluster& cluster) { cluster.kill_head(); }},
      {"its worker is killed", [](SimulatedCluster& cluster) { cluster.kill_worker(NodeId{0}, 0); }},
      {"another worker is killed", [](SimulatedCluster& cluster) { cluster.kill_worker(NodeId{1}, 0); }},
      {"the strategy is changed", [&to](SimulatedCluster& cluster) { set(cluster, to); }},
      {"all are wanted", [](SimulatedCluster& cluster) { scale(cluster, 4); }},
      {"a node is added", [](SimulatedCluster& cluster) { cluster.add_node(); }},
      {"the next one is drained, too",
       [](SimulatedCluster& cluster) {
         ask(cluster, "drain", {{"node", 1}});
       }},
      {"all are drained", [](SimulatedCluster& cluster) {
         for (const int node : {1, 2}) ask(cluster, "drain", {{"node", node}});
       }}};
  auto how = of_four(3, 0);
  how.least = 1;
  how.driver = NodeId{1};
  expect_none_wrong(how, all, 9, drain);
}

INSTANTIATE_TEST_SUITE_P(Strategies, TheLeaderIsDrained, testing::ValuesIn(strategies_of_returns()));

/// Any strategy, on one to three nodes: changed again and again, while workers are killed, come back, come and go, and
/// nodes are added.
std::string life_in_legs(std::uint64_t seed, std::uint64_t& happened) {
  std::mt19937_64 random(seed);
  const auto up_to = [&random](std::uint64_t most) { return static_cast<int>(random() % (most + 1)); };
  const auto any = strategies_of_returns();
  const auto some = [&] { return std::string(any.at(random() % any.size())); };
  Changed how;
  how.from = some();
  how.nodes = 1 + up_to(2);
  how.restarts = 100;
  how.begin_with = up_to(1) * (2 + up_to(1));
  how.evaluate_every = up_to(1) * 6 - 1;
  how.updates = 60;
  std::string did;
  int nodes = how.nodes;
  const auto happens = [&](SimulatedCluster& cluster) {
    for (int times = 2 + up_to(5); times > 0; --times) {
      switch (up_to(4)) {
        case 0: {
          const int node = up_to(static_cast<std::uint64_t>(nodes) - 1), which = up_to(3);
          cluster.kill_worker(NodeId{node}, static_cast<std::uint64_t>(which));
          did += "kill worker " + std::to_string(which) + " of node " + std::to_string(node);
          break;
        }
        case 1: {
          const int workers = how.nodes + up_to(4 - static_cast<std::uint64_t>(how.nodes));
          if (const int rank = workers - 1; seed % 3 == 0) {
            ask(cluster, "drain", {{"worker", rank}});
            did += "drain worker " + std::to_string(rank);
          } else if (seed % 3 == 1) {
            const int node = up_to(static_cast<std::uint64_t>(nodes) - 1);
            ask(cluster, "drain", {{"node", node}});
            did += "drain node " + std::to_string(node);
          } else {
            scale(cluster, workers);
            did += "scale to " + std::to_string(workers);
          }
          break;
        }
        case 2:
          cluster.add_node();
          did += "add node " + std::to_string(nodes++);
          break;
        default: {
          const auto to = some();
          set(cluster, to);
          did += "set to " + to;
        }
      }
      ++happened;
      const auto pause = std::chrono::milliseconds(up_to(25));
      did += "; after " + std::to_string(pause.count()) + " ms ";
      cluster.run(pause);
    }
  };
  const auto wrong = sim::wrong(how, std::chrono::milliseconds(15 + up_to(60)), happens);
  if (wrong.starts_with("all workers have ended")) return {};  // Nobody has a model.
  return wrong.empty() ? wrong : how.from + " on " + std::to_string(how.nodes) + ": " + did + wrong;
}

/// The file of a graph is gone when its nodes, or the head, look.
TEST(ALegThatCannotBe, LeavesWhatWasAskedForBefore) {
  const test::TestDirectory directory;
  const std::string file = directory.path / "graph.txt";
  int kept = 0;
  for (Duration delay{}; delay < 1ms; delay += 200us) {  // Then it has begun, and fails by name.
    std::ofstream(file) << "0 1\n1 2\n2 3\n3 0\n";
    Told seen;
    std::string texts;
    const auto happens = [&](SimulatedCluster& cluster) {
      set(cluster, "local-sgd(period=5)");
      set(cluster, "matcha(" + file + ")");
      cluster.run(delay);
      std::filesystem::remove(file);
      for (int i = 0; i < 20; ++i) cluster.run(5ms);
      texts = texts_of(*cluster.drivers().front()->jobs().front());
    };
    EXPECT_EQ(wrong({.nodes = 2, .updates = 100}, 25ms, happens, &seen), "") << seconds(delay);
    EXPECT_GE(seen.changes, 1u) << texts;
    const bool was_refused = texts.find("the job does not go on with matcha(") != std::string::npos;
    kept += was_refused && texts.find("on with local-sgd(period=5)") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(kept, 1);
}

TEST(LegLives, EndWell) {
  expect_to_end_well(200, "changes, kills, nodes, and changes of how many are wanted", 3, life_in_legs);
}

}  // namespace
}  // namespace paceline::sim
