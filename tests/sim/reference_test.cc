#include "tests/support/reference/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <sstream>

#include "algorithms/simulate/job.h"

// The simulator (production engine, plans, grouping, controllers) against the independent reference, on random jobs.

namespace paceline {
namespace {

struct Pair {
  simulate::Job job;
  reference::Job expected;
};

int pick(std::mt19937& dice, int from, int to) { return std::uniform_int_distribution<int>(from, to)(dice); }

std::string describe(const simulate::Job& job) {
  std::ostringstream s;
  s << job.strategy << " P=" << job.workers.size() << " T=" << job.steps << " mu=" << job.momentum << " compute";
  for (const auto& row : job.compute_s) {
    s << " [";
    for (double c : row) s << c << ' ';
    s << ']';
  }
  return s.str();
}

/// Small whole times make ties; every strategy, parameter and number of workers turns up.
Pair random_pair(std::mt19937& dice) {
  Pair p;
  const int kind = pick(dice, 0, 4);
  const int workers = kind == 2 ? 1 << pick(dice, 1, 3) : pick(dice, 1, 6);
  const int dimensions = pick(dice, 1, 2);
  reference::Strategy& s = p.expected.strategy;
  std::ostringstream text;
  const auto late = [&] {
    if (pick(dice, 0, 1) != 0) {
      s.skip = true;
      text << ",late=skip";
    }
    const int grace = pick(dice, 0, 3);
    if (grace == 1) {
      s.grace_s = pick(dice, 1, 4);
      text << ",grace=" << s.grace_s << "s";
    } else if (grace == 2) {
      s.grace_factor = 0.5 * pick(dice, 1, 4);
      text << ",grace=" << s.grace_factor << "x";
    }
  };
  if (kind == 0) {
    s.kind = reference::Strategy::Kind::allreduce;
    text << "allreduce";
  } else if (kind == 1) {
    s.kind = reference::Strategy::Kind::local_sgd;
    s.period = pick(dice, 1, 5);
    text << "local-sgd(period=" << s.period;
    late();
    text << ")";
  } else if (kind == 2) {
    s.kind = reference::Strategy::Kind::wagma;
    s.group = 1 << pick(dice, 0, static_cast<int>(std::log2(workers)));
    s.period = pick(dice, 1, 6);
    text << "wagma(group=" << s.group << ",sync=" << s.period;
    late();
    text << ")";
  } else if (kind == 3) {
    s.kind = reference::Strategy::Kind::adacomm;
    s.period = pick(dice, 1, 6);
    s.interval_s = pick(dice, 2, 20);
    s.loss_window = pick(dice, 1, 5);
    s.block_momentum = pick(dice, 0, 1) * 0.25;
    s.gamma = 0.25 * pick(dice, 1, 3);
    text << "adacomm(period=" << s.period << ",interval=" << s.interval_s << "s,loss_window=" << s.loss_window
         << ",block_momentum=" << s.block_momentum << ",gamma=" << s.gamma << ")";
  } else {
    s.kind = reference::Strategy::Kind::nonblocking;
    s.batches = pick(dice, 1, 5);
    s.normalise = "abd"[pick(dice, 0, 2)];
    text << "nonblocking(allreduce,batches=" << s.batches << ",normalise=" << s.normalise << ")";
  }
  p.job.strategy = text.str();
  const auto vector = [&] {
    std::vector<double> v;
    for (int k = 0; k < dimensions; ++k) v.push_back(pick(dice, 0, 12));
    return v;
  };
  const bool one_start = kind == 0 || kind == 4 || pick(dice, 0, 1) != 0;
  const auto start = vector();
  for (int i = 0; i < workers; ++i) {
    std::vector<double> a;
    for (int k = 0; k < dimensions; ++k) a.push_back(0.5 * pick(dice, 1, 4));
    const auto c = vector();
    p.job.workers.push_back({a, c});
    p.expected.workers.push_back({a, c});
    p.job.start.push_back(one_start ? start : vector());
  }
  p.expected.start = p.job.start;
  p.job.lr = p.expected.lr = 0.125 * pick(dice, 1, 3);
  p.job.momentum = p.expected.momentum = pick(dice, 0, 1) * 0.5;
  p.job.nesterov = p.expected.nesterov = p.job.momentum > 0 && pick(dice, 0, 1) != 0;
  p.job.steps = p.expected.steps = pick(dice, 1, 24);
  const int rows = pick(dice, 1, 6);
  const bool ties = pick(dice, 0, 2) != 0;
  for (int r = 0; r < rows; ++r) {
    p.job.compute_s.emplace_back();
    for (int i = 0; i < workers; ++i) {
      p.job.compute_s.back().push_back(ties ? pick(dice, 1, 4) : 1e-3 * pick(dice, 500, 4000));
    }
  }
  p.expected.compute_s = p.job.compute_s;
  return p;
}

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
    ASSERT_EQ(r.period, e.period) << at;
    ASSERT_EQ(r.batches_done, e.batches_done) << at;
    for (std::size_t k = 0; k < e.model.size(); ++k) {
      ASSERT_NEAR(r.model[k], e.model[k], 1e-9 * std::max(1.0, std::abs(e.model[k]))) << at;
    }
    ASSERT_NEAR(r.loss, e.loss, 1e-9 * std::max(1.0, std::abs(e.loss))) << at;
  }
  ASSERT_EQ(rows.size(), expected.size());
}

TEST(AgainstTheReference, RandomJobsHaveTheSameRowsOnOneAgent) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 dice(seed);
    const Pair p = random_pair(dice);
    const auto rows = simulate::simulate(p.job);
    ASSERT_TRUE(rows) << rows.error().text << " " << describe(p.job);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(p.job));
    expect_equal(*rows, reference::run(p.expected));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(AgainstTheReference, HowWorkersAreSpreadOverAgentsChangesNothing) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 dice(seed);
    Pair p = random_pair(dice);
    // Agents measure their own workers' steps: a grace in median steps differs, and is no part of the contract then.
    p.expected.strategy.grace_factor = 0;
    if (p.job.strategy.find('x') != std::string::npos) continue;
    const int nodes = pick(dice, 1, static_cast<int>(p.job.workers.size()));
    for (std::size_t i = 0; i < p.job.workers.size(); ++i) {
      p.job.node_of.push_back(i < static_cast<std::size_t>(nodes) ? static_cast<int>(i) : pick(dice, 0, nodes - 1));
    }
    const auto rows = simulate::simulate(p.job);
    ASSERT_TRUE(rows) << rows.error().text;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(p.job));
    expect_equal(*rows, reference::run(p.expected));
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace paceline
