#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/reference/testing.h"

namespace paceline::reference {
namespace {

// What holds for every strategy, on random jobs.

std::vector<Strategy> all_strategies(int workers) {
  using S = Strategy;
  std::vector<int> mirrored, next;
  Edges pairs;
  for (int i = 0; i < workers; ++i) {
    mirrored.push_back(workers - 1 - i);
    next.push_back((i + 1) % workers);
    if (i % 2 == 1) pairs.push_back({i - 1, i});
  }
  std::vector<Strategy> all{
      {.kind = Kind::allreduce},
      {.kind = Kind::local_sgd, .period = 3},
      {.kind = Kind::post_local, .period = 3, .grace_s = 0.5, .warmup = 4},
      {.kind = Kind::adacomm, .period = 5, .interval_s = 6},
      {.kind = Kind::qsr, .period = 2, .qsr_alpha = 0.15},
      {.kind = Kind::hier_avg, .group = 2, .k1 = 2, .k2 = 5},
      {.kind = Kind::d_psgd},
      {.kind = Kind::d_psgd, .graph = S::Graph::complete, .atc = true},
      {.kind = Kind::matcha, .matchings = {pairs}, .alpha = 0.3, .active = {{0}, {}}},
      {.kind = Kind::sgp, .peers = 2},
      {.kind = Kind::sgp, .peers = 2, .hops = S::Hops::base},
      {.kind = Kind::osgp},
      {.kind = Kind::osgp, .bound = 4},
      {.kind = Kind::ad_psgd, .partners = {mirrored, next}},
      {.kind = Kind::server},
      {.kind = Kind::server, .server = S::Server::async, .scale = S::Scale::staleness},
      {.kind = Kind::server, .bound = 2, .server = S::Server::bounded, .scale = S::Scale::p},
      {.kind = Kind::eager_sgd, .sync = 4},
      {.kind = Kind::eager_sgd, .trigger = S::Trigger::majority, .initiators = {0, workers - 1}, .drop = true},
      {.kind = Kind::eager_sgd, .trigger = S::Trigger::quorum, .quorum = (workers + 1) / 2},
      {.kind = Kind::bmuf, .period = 3, .nesterov_blocks = true},
      {.kind = Kind::slowmo, .period = 3},
      {.kind = Kind::diloco, .period = 3, .outer_lr = 0.7, .outer_momentum = 0.9},
      {.kind = Kind::wagma, .period = 4, .group = 1, .grace_s = 0.5, .late_version = true},
  };
  for (const Kind base : {Kind::allreduce, Kind::d_psgd, Kind::hier_avg, Kind::server})
    for (const bool wait : {false, true})
      all.push_back({.kind = Kind::nonblocking, .batches = 3, .base = base, .wait = wait});
  if (workers % 2 == 0) {
    all.push_back({.kind = Kind::d_psgd, .graph = S::Graph::bipartite});
    for (const bool code : {false, true}) {
      all.push_back({.kind = Kind::wagma, .period = 4, .group = 2, .late_version = true, .code = code});
      all.push_back({.kind = Kind::wagma, .period = 4, .group = 2, .grace_s = 0.5, .strided = true, .code = code});
    }
  }
  return all;
}

Job some_job(unsigned seed, int workers, const Strategy& strategy, int steps) {
  std::mt19937 random(seed);
  auto job = mixing_only(workers, strategy, steps);
  const double c = static_cast<double>(random() % 10);
  job.start.assign(job.start.size(), {c, 2});
  for (Objective& objective : job.workers)
    objective = {{0.5 + static_cast<double>(random() % 3), 1}, {static_cast<double>(random() % 12), 3}};
  job.lr = 0.0625;
  job.momentum = seed % 2 == 0 ? 0.5 : 0;
  job.nesterov = seed % 4 == 0;
  job.compute_s.clear();
  for (int t = 0; t < 7; ++t) {
    job.compute_s.emplace_back();
    for (int i = 0; i < workers; ++i) job.compute_s.back().push_back(0.25 * static_cast<double>(1 + random() % 9));
  }
  return job;
}

TEST(ReferenceEveryKindTest, EveryWorkerHasARowForEveryStep) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    const int workers = 1 << (seed % 4);
    for (const Strategy& strategy : all_strategies(workers)) {
      SCOPED_TRACE("kind " + std::to_string(static_cast<int>(strategy.kind)) + " seed " + std::to_string(seed));
      const auto job = some_job(seed, workers, strategy, 19);
      const auto rows = run(job);
      ASSERT_EQ(rows.size(), static_cast<std::size_t>(19 * workers));
      for (int i = 0; i < workers; ++i) {
        double time = 0;
        int step = 0;
        for (const Row& row : rows) {
          if (row.worker != i) continue;
          ASSERT_EQ(row.step, step++);
          if (strategy.kind != Kind::nonblocking) {
            EXPECT_GE(row.time_s,
                      time + job.compute_s[static_cast<std::size_t>(row.step % 7)][static_cast<std::size_t>(i)]);
          }
          time = row.time_s;
          EXPECT_TRUE(std::is_sorted(row.group.begin(), row.group.end()));
          EXPECT_EQ(std::count(row.group.begin(), row.group.end(), i), 1);
          EXPECT_TRUE(std::isfinite(row.model[0]));
        }
        EXPECT_GE(summarise(job).wait_s[static_cast<std::size_t>(i)], -1e-9);
      }
    }
  }
}

TEST(ReferenceEveryKindTest, ARunIsTheSameEachTime) {
  for (const Strategy& strategy : all_strategies(4)) {
    const auto job = some_job(3, 4, strategy, 19);
    const auto once = run(job), again = run(job);
    expect_same(once, again);
    for (std::size_t k = 0; k < once.size(); ++k) EXPECT_EQ(once[k].model, again[k].model);
  }
}

TEST(ReferenceEveryKindTest, WhereAllAgreeNobodyMoves) {
  for (const Strategy& strategy : all_strategies(4)) {
    SCOPED_TRACE("kind " + std::to_string(static_cast<int>(strategy.kind)));
    auto job = some_job(5, 4, strategy, 19);
    for (Objective& objective : job.workers) objective.c = job.start.front();
    for (const Row& row : run(job)) EXPECT_NEAR(row.model[0], job.start.front()[0], 1e-9);
  }
}

TEST(ReferenceEveryKindTest, OneWorkerAloneIsSerial) {
  for (const Strategy& strategy : all_strategies(1)) {
    const bool outer = strategy.kind == Kind::bmuf || strategy.kind == Kind::slowmo || strategy.kind == Kind::diloco;
    if (outer || strategy.kind == Kind::nonblocking) continue;
    SCOPED_TRACE("kind " + std::to_string(static_cast<int>(strategy.kind)));
    expect_same(run(some_job(2, 1, strategy, 19)), run(some_job(2, 1, {.kind = Kind::allreduce}, 19)));
  }
}

}  // namespace
}  // namespace paceline::reference
