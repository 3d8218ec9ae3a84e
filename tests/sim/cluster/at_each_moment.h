#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/simulate/cluster/simulated_cluster.h"
#include "algorithms/strategy.h"
#include "runtime/base/json.h"
#include "tests/sim/cluster/lives.h"
#include "tests/sim/cluster/strategies.h"
#include "tests/support/sanitized.h"

namespace paceline::sim {

/// Where all take part in each update, what two workers had of one is the same. What is not; empty: nothing.
inline std::string differing_averages(const std::string& strategy, std::uint64_t job,
                                      const simulate::SimulatedCluster& cluster) {
  if (!strategy.starts_with("allreduce") && !strategy.starts_with("nonblocking(batches")) return {};
  std::map<std::int64_t, std::pair<std::int32_t, double>> of_update;
  for (const auto& one : cluster.trained()) {
    if (one.job != job) continue;
    for (const auto& [update, average] : one.averages) {
      const auto [first, is_first] = of_update.try_emplace(update, one.rank, average);
      if (!is_first && first->second.second != average)
        return "workers " + std::to_string(first->second.first) + " and " + std::to_string(one.rank) +
               " have other averages of update " + std::to_string(update);
    }
  }
  return {};
}

/// Each evaluation is told of once, in order; where all stand still for it none is left out. What is wrong; empty:
/// nothing.
inline std::string wrong_evaluations(const std::string& strategy, const simulate::SimulatedDriver::Job& job) {
  const std::int64_t every = job.training.evaluate_every;
  const bool holds = strategy.starts_with("allreduce");  // In each update, and all have what is evaluated.
  std::int64_t before = 0;
  for (const auto& event : job.news) {
    if (event.value("event", "") != "evaluated") continue;
    const auto update = event.value("update", std::int64_t{0});
    if (update <= before) return "evaluated again: " + std::to_string(update);
    if (holds && every > 0 && update > before + every) return "not evaluated after " + std::to_string(before);
    before = update;
  }
  return every < 0 || !holds || before == job.training.updates ? "" : "not evaluated at the end";
}

/// What people would have read of it.
inline std::string texts_of(const simulate::SimulatedDriver::Job& job) {
  std::string texts;
  for (const auto& event : job.news)
    if (event.contains("text")) texts += event.at("text").get<std::string>() + "; ";
  for (const auto& event : job.news)
    if (event.value("event", "") == "evaluated") texts += "evaluated " + json_text(event.at("update")) + "; ";
  return texts;
}

/// As it was asked to: by itself, or with its node, when a leg had ended there.
inline bool has_left(const simulate::SimulatedDriver::Job& job, const simulate::Trained& one) {
  return one.has_left || (one.updates < job.training.updates &&
                          std::any_of(job.news.begin(), job.news.end(), [&one](const nlohmann::json& event) {
                            return event.value("event", "") == "left" && event.value("drained", false) &&
                                   event.value("worker", -1) == one.rank;
                          }));
}

/// Somebody asks the head to do something about the first job. Gives the request.
inline std::uint64_t ask(simulate::SimulatedCluster& cluster, const std::string& verb, nlohmann::json body) {
  auto& driver = *cluster.drivers().front();
  body["job"] = driver.jobs().front()->training.job;
  return driver.request(verb, json_text(body));
}

inline std::uint64_t scale(simulate::SimulatedCluster& cluster, int workers) {
  return ask(cluster, "scale", {{"workers", workers}});
}

/// At each moment of a short job something happens to one of its workers: all that are left end with one model.
struct AtEachMoment {
  std::string strategy;
  std::int64_t evaluate_every = -1;
  Duration moments{};
  std::size_t least = 1;  ///< Workers that are left.
  std::int32_t nodes = 2;
  Duration apart = std::chrono::milliseconds(1);
  std::int64_t updates = 12;
  Duration first = std::chrono::milliseconds(5);  ///< Moment, after the job is submitted.
  NodeId driver{0};
  int restarts = 0;    ///< Of each worker.
  int begin_with = 0;  ///< Of the four places so many are taken; 0: all.
};

/// Each fifth moment; where PACELINE_EVERY_MOMENT is set each.
inline const int kCoarser = kSanitized ? 25 : std::getenv("PACELINE_EVERY_MOMENT") != nullptr ? 1 : 5;

inline void expect_one_model_whenever(const AtEachMoment& how,
                                      const std::function<void(simulate::SimulatedCluster&)>& happens) {
  for (Duration moment{}; moment < how.moments; moment += kCoarser * how.apart) {
    simulate::SimulatedCluster cluster({.nodes = how.nodes});
    auto& driver = begin(cluster, how.driver);
    simulate::Training training;
    training.updates = how.updates;
    training.evaluate_every = how.evaluate_every;
    const nlohmann::json options{{"strategy", how.strategy},
                                 {"workers", 4},
                                 {"seed", 1},
                                 {"restarts", how.restarts},
                                 {"begin_with", how.begin_with}};
    const auto& job = driver.submit(options, training);
    cluster.run(how.first + moment);
    happens(cluster);
    for (int i = 0; i < 300 && !driver.is_over(job); ++i) cluster.run(std::chrono::milliseconds(100));
    const auto when = how.strategy + " on " + std::to_string(how.nodes) + " nodes, after " +
                      std::to_string(seconds(moment)) + " s: " + driver.state_of(job) + "; " + texts_of(job);
    ASSERT_TRUE(driver.is_over(job)) << when;
    ASSERT_EQ(job.failure, "") << when;
    std::vector<simulate::Trained> ended;  // But who comes to a job that has ended, and who was asked to leave.
    for (const auto& one : cluster.trained())
      if (!has_left(job, one) && ((how.restarts == 0 && how.begin_with == 0) || one.trouble.empty()))
        ended.push_back(one);
    ASSERT_GE(ended.size(), how.least) << when;
    for (const auto& one : ended) ASSERT_EQ(one.model, ended.front().model) << when;
    for (const double x : ended.front().model) ASSERT_LT(std::abs(x), 10) << when;
    ASSERT_EQ(differing_averages(how.strategy, job.training.job, cluster), "") << when;
    ASSERT_EQ(wrong_evaluations(how.strategy, job), "") << when;
  }
}

/// Sanitizers see some of them only.
inline std::vector<const char*> some_of(const std::vector<const char*>& all) {
  std::vector<const char*> some;
  for (std::size_t i = 0; i < all.size(); i += kSanitized ? 4 : 1) some.push_back(all[i]);
  return some;
}

inline std::vector<const char*> strategies() { return some_of({kStrategies.begin(), kStrategies.end()}); }

/// Those under which a worker comes back.
inline std::vector<const char*> strategies_of_returns() {
  std::vector<const char*> all;
  std::copy_if(kStrategies.begin(), kStrategies.end(), std::back_inserter(all), [](const char* strategy) {
    return algorithms::workers_come_back(*algorithms::parse_strategy(strategy, 4), 4);
  });
  return some_of(all);
}

}  // namespace paceline::sim
