#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "tests/sim/random_jobs.h"

// The simulator (production engines, plans, topologies, controllers) against the independent reference, on random jobs.
// PACELINE_RANDOM_JOBS: how many of each strategy (the long suite takes thousands).

namespace paceline::sim {
namespace {

unsigned jobs() {
  const char* const given = std::getenv("PACELINE_RANDOM_JOBS");
  return given != nullptr ? static_cast<unsigned>(std::atoi(given)) : 120;
}

double tolerance(double value) { return 1e-12 * std::max(1.0, std::abs(value)); }

void expect_equal(const std::vector<simulate::Row>& rows, const std::vector<reference::Row>& expected) {
  for (std::size_t i = 0; i < std::min(rows.size(), expected.size()); ++i) {
    const auto& r = rows[i];
    const auto& e = expected[i];
    const std::string at =
        "row " + std::to_string(i) + ": worker " + std::to_string(e.worker) + " step " + std::to_string(e.step);
    ASSERT_EQ(r.worker.value, e.worker) << at;
    ASSERT_EQ(r.step.value, e.step) << at;
    ASSERT_NEAR(seconds(r.time), e.time_s, 1e-9) << at;
    ASSERT_EQ(r.fresh, e.fresh) << at;
    std::vector<int> group;
    for (Rank rank : r.group) group.push_back(rank.value);
    ASSERT_EQ(group, e.group) << at;
    ASSERT_NEAR(r.weight, e.weight, 1e-12) << at;
    ASSERT_EQ(r.period, e.period) << at;
    ASSERT_EQ(r.batches_done, e.batches_done) << at;
    for (std::size_t k = 0; k < e.model.size(); ++k) ASSERT_NEAR(r.model[k], e.model[k], tolerance(e.model[k])) << at;
    ASSERT_NEAR(r.loss, e.loss, 100 * tolerance(e.loss)) << at;
  }
  ASSERT_EQ(rows.size(), expected.size());
}

void expect_equal(const simulate::Summary& summary, const reference::Summary& expected) {
  for (std::size_t k = 0; k < expected.model.size(); ++k)
    ASSERT_NEAR(summary.model[k], expected.model[k], tolerance(expected.model[k]));
  ASSERT_NEAR(seconds(summary.time), expected.virtual_s, 1e-9);
  ASSERT_EQ(summary.waited.size(), expected.wait_s.size());
  for (std::size_t i = 0; i < expected.wait_s.size(); ++i)
    ASSERT_NEAR(seconds(summary.waited[i]), expected.wait_s[i], 1e-9) << "worker " << i;
  ASSERT_EQ(summary.messages, expected.messages);
  ASSERT_EQ(summary.bytes, expected.bytes);
}

class AgainstTheReference : public testing::TestWithParam<std::string> {};

TEST_P(AgainstTheReference, RandomJobsHaveTheSameRowsOnOneAgent) {
  for (unsigned seed = 0; seed < jobs(); ++seed) {
    const Pair p = random_pair(GetParam(), seed);
    const auto outcome = simulate::simulate(p.job);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(p.job));
    ASSERT_TRUE(outcome) << outcome.error().text;
    expect_equal(outcome->rows, reference::run(p.expected));
    if (testing::Test::HasFatalFailure()) return;
    expect_equal(outcome->summary, reference::summarise(p.expected));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST_P(AgainstTheReference, HowWorkersAreSpreadOverAgentsChangesNothing) {
  for (unsigned seed = 0; seed < jobs() / 3; ++seed) {
    Pair p = random_pair(GetParam(), seed);
    // Agents measure their own workers' steps: a grace in median steps differs, and is no part of the contract then.
    if (p.expected.strategy.grace_factor > 0) continue;
    std::mt19937 dice(seed);
    const auto pick = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(dice); };
    const int nodes = pick(1, static_cast<int>(p.job.workers.size()));
    for (int i = 0; i < static_cast<int>(p.job.workers.size()); ++i)
      p.job.node_of.push_back(i < nodes ? i : pick(0, nodes - 1));
    const auto outcome = simulate::simulate(p.job);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(p.job));
    ASSERT_TRUE(outcome) << outcome.error().text;
    expect_equal(outcome->rows, reference::run(p.expected));
    if (testing::Test::HasFatalFailure()) return;
  }
}

class WhereWorkersLeaveAndJoin : public testing::TestWithParam<std::string> {};

TEST_P(WhereWorkersLeaveAndJoin, RandomJobsHaveTheSameRowsHoweverWorkersAreSpread) {
  unsigned with_views = 0, joins = 0;
  for (unsigned seed = 0; seed < jobs(); ++seed) {
    Pair p = random_pair(GetParam(), seed);
    if (!add_views(p, seed)) continue;
    ++with_views;
    for (const auto& view : p.job.views) joins += static_cast<unsigned>(view.join.size());
    const auto workers = static_cast<int>(p.job.workers.size());
    std::mt19937 dice(seed);
    const auto pick = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(dice); };
    for (const int nodes : {1, pick(2, workers)}) {
      p.job.node_of.clear();
      for (int i = 0; i < workers; ++i) p.job.node_of.push_back(i < nodes ? i : pick(0, nodes - 1));
      const auto outcome = simulate::simulate(p.job);
      SCOPED_TRACE("seed " + std::to_string(seed) + " on " + std::to_string(nodes) + ": " + describe(p.job));
      ASSERT_TRUE(outcome) << outcome.error().text;
      expect_equal(outcome->rows, reference::run(p.expected));
      if (testing::Test::HasFatalFailure()) return;
      expect_equal(outcome->summary, reference::summarise(p.expected));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GE(with_views, jobs() / 12);
  EXPECT_GE(joins, jobs() / 12);
}

INSTANTIATE_TEST_SUITE_P(Strategies, WhereWorkersLeaveAndJoin, testing::ValuesIn(strategies_of_views()),
                         [](const auto& strategy) { return strategy.param; });

INSTANTIATE_TEST_SUITE_P(Strategies, AgainstTheReference, testing::ValuesIn(random_strategies()),
                         [](const auto& strategy) { return strategy.param; });

}  // namespace
}  // namespace paceline::sim
