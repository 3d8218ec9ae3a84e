#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <tuple>

#include "tests/sim/outcomes.h"
#include "tests/sim/random_jobs.h"

// What must hold whatever the job: invariants across strategies, on random jobs, without the reference. What is given
// is what arrives: conservation_test.cc.

namespace paceline::sim {
namespace {

using simulate::Job;
using simulate::Row;
using simulate::Vector;

/// Everybody takes the same time for a step, so that nobody is late.
void put_in_time(Job& job) {
  for (auto& row : job.compute_s) row.assign(row.size(), row[0]);
}

// Learning rate 0 --------------------------------------------------------------------------------------------------

struct Still {
  const char* strategy;    ///< Of random_strategies().
  bool never_moves_apart;  ///< Its matrices are doubly stochastic and none is expansive.
  bool in_time = false;    ///< It promises this only if nobody is late.
};
void PrintTo(const Still& still, std::ostream* out) { *out << still.strategy; }

class WithoutSteps : public testing::TestWithParam<Still> {};

TEST_P(WithoutSteps, TheMeanStaysAndModelsDoNotMoveApart) {
  for (unsigned seed = 0; seed < jobs(60); ++seed) {
    Job job = random_pair(GetParam().strategy, seed).job;
    job.lr = 0;
    if (GetParam().in_time) put_in_time(job);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(job));
    const auto outcome = simulate::simulate(job);
    ASSERT_TRUE(outcome) << outcome.error().text;
    const Vector expected = mean(job.start);
    double before = distance(job.start);
    for (const auto& [step, rows] : by_step(*outcome)) {
      const std::string at = "after step " + to_string(step);
      ASSERT_EQ(rows.size(), job.workers.size()) << at;
      expect_near(mean(models_of(rows)), expected, at);
      const double now = distance(models_of(rows));
      if (GetParam().never_moves_apart) {
        ASSERT_LE(now, before + 1e-9) << at;
      }
      before = now;
    }
    expect_near(outcome->summary.model, expected, "at the end");
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, WithoutSteps,
                         testing::Values(Still{"allreduce", true}, Still{"one_shot", true}, Still{"hier_avg", true},
                                         Still{"d_psgd", true}, Still{"matcha", false}, Still{"sgp", true},
                                         Still{"eager_sgd", true}, Still{"nonblocking", true},
                                         Still{"nonblocking_neighbours", false}, Still{"local_sgd", true, true},
                                         Still{"k_avg", true, true}, Still{"post_local", true, true},
                                         Still{"wagma", true, true}, Still{"wagma_strided", true, true}),
                         [](const auto& tested) { return std::string(tested.param.strategy); });

TEST(WithoutSteps, PairsAndOverlappedPushesKeepTheMeanOfAll) {
  for (const char* const strategy : {"ad_psgd", "osgp"}) {
    for (unsigned seed = 0; seed < jobs(100); ++seed) {
      Job job = random_pair(strategy, seed).job;
      job.lr = 0;
      const auto outcome = simulate::simulate(job);
      ASSERT_TRUE(outcome) << outcome.error().text;
      expect_near(outcome->summary.model, mean(job.start), describe(job));
    }
  }
}

// The same as allreduce --------------------------------------------------------------------------------------------

std::map<std::pair<Rank, Version>, Vector> models(const Job& job) {
  std::map<std::pair<Rank, Version>, Vector> all;
  const auto outcome = simulate::simulate(job);
  EXPECT_TRUE(outcome) << outcome.error().text;
  if (outcome) {
    for (const Row& row : outcome->rows) all[{row.worker, row.step}] = row.model;
  }
  return all;
}

void expect_same_models(Job job, const std::string& strategy, const std::string& other) {
  job.strategy = strategy;
  const auto expected = models(job);
  job.strategy = other;
  const auto got = models(job);
  SCOPED_TRACE(other + " against " + describe(job));
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [key, model] : expected) {
    expect_near(got.at(key), model, "worker " + to_string(key.first) + " step " + to_string(key.second));
    if (testing::Test::HasFatalFailure()) return;
  }
}

Job plain_job(unsigned seed) {
  Job job = random_pair("allreduce", seed).job;
  job.momentum = 0;
  job.nesterov = false;
  return job;
}

TEST(OnPlainSgd, WhateverAveragesAllAtEveryStepIsAllreduce) {
  for (unsigned seed = 0; seed < jobs(120); ++seed) {
    const Job job = plain_job(seed);
    const std::string p = std::to_string(job.workers.size());
    std::vector<std::string> same{"local-sgd(period=1)",
                                  "k-avg(period=1)",
                                  "post-local(period=1,warmup=3)",
                                  "hier-avg(k1=1,k2=1,group=1)",
                                  "hier-avg(k1=1,k2=3,group=" + p + ")",
                                  "d-psgd(complete,order=atc)",
                                  "adacomm(period=1)",
                                  "slowmo(period=1,beta=0,alpha=1)",
                                  "diloco(period=1,lr=1,momentum=0)",
                                  "server(sync)",
                                  "eager-sgd(quorum=" + p + ",sync=4)",
                                  "eager-sgd(quorum=" + p + ",late=drop,sync=3)"};
    if (job.workers.size() > 1) same.push_back("sgp(peers=" + std::to_string(job.workers.size() - 1) + ",hops=base)");
    for (const auto& strategy : same) {
      expect_same_models(job, "allreduce", strategy);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(OnPlainSgd, WhoWaitsForNobodyIsAllreduceIfNobodyIsLate) {
  for (unsigned seed = 0; seed < jobs(120); ++seed) {
    Job job = plain_job(seed);
    put_in_time(job);
    const std::string p = std::to_string(job.workers.size());
    std::vector<std::string> same{"nonblocking(allreduce,batches=3)",
                                  "nonblocking(allreduce,batches=2,normalise=a)",
                                  "nonblocking(server,batches=4,normalise=d,inflight=wait)",
                                  "nonblocking(d-psgd(complete,order=atc),batches=2)",
                                  "eager-sgd(solo,sync=5)",
                                  "eager-sgd(majority,sync=4)",
                                  "wagma(group=" + p + ",sync=4,grouping=strided)",
                                  "wagma(group=" + p + ",sync=3,grouping=strided,late=skip,grace=1s)"};
    if (std::has_single_bit(job.workers.size())) same.push_back("wagma(group=" + p + ",sync=7)");
    for (const auto& strategy : same) {
      expect_same_models(job, "allreduce", strategy);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(OnPlainSgd, ClustersOfOneOrOfAllAreLocalSgd) {
  for (unsigned seed = 0; seed < jobs(120); ++seed) {
    const Job job = plain_job(seed);
    const std::string p = std::to_string(job.workers.size());
    const auto k1 = 1 + seed % 4;
    const std::string k = std::to_string(k1), m = std::to_string(k1 * (1 + seed % 3));
    expect_same_models(job, "k-avg(period=" + m + ")", "hier-avg(k1=" + k + ",k2=" + m + ",group=1)");
    expect_same_models(job, "k-avg(period=" + k + ")", "hier-avg(k1=" + k + ",k2=" + m + ",group=" + p + ")");
    expect_same_models(job, "k-avg(period=" + m + ")", "hier-avg(k1=" + m + ",k2=" + m + ",group=" + p + ")");
    expect_same_models(job, "k-avg(period=" + m + ")", "wagma(group=1,sync=" + m + ",grouping=strided)");
    expect_same_models(job, "one-shot", "local-sgd(period=" + std::to_string(job.steps) + ")");
    if (HasFatalFailure()) return;
  }
}

// The same job twice -----------------------------------------------------------------------------------------------

bool same_bits(const Vector& a, const Vector& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  });
}

class Replayed : public testing::TestWithParam<std::string> {};

TEST_P(Replayed, AJobGivesTheSameBits) {
  for (unsigned seed = 0; seed < jobs(40); ++seed) {
    Job job = random_pair(GetParam(), seed).job;
    if (seed % 2 != 0) {
      for (std::size_t i = 0; i < job.workers.size(); ++i) job.node_of.push_back(static_cast<std::int32_t>(i / 2));
    }
    if (seed % 4 >= 2) job.latency_s = 0.25;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + describe(job));
    const auto first = simulate::simulate(job), second = simulate::simulate(job);
    ASSERT_TRUE(first) << first.error().text;
    ASSERT_EQ(first->rows.size(), second->rows.size());
    for (std::size_t i = 0; i < first->rows.size(); ++i) {
      const Row &a = first->rows[i], &b = second->rows[i];
      ASSERT_EQ(std::tie(a.worker, a.step, a.time, a.fresh, a.group, a.period, a.batches_done),
                std::tie(b.worker, b.step, b.time, b.fresh, b.group, b.period, b.batches_done))
          << "row " << i;
      ASSERT_TRUE(same_bits(a.model, b.model) && same_bits({a.weight, a.loss}, {b.weight, b.loss})) << "row " << i;
    }
    ASSERT_TRUE(same_bits(first->summary.model, second->summary.model));
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, Replayed, testing::ValuesIn(random_strategies()),
                         [](const auto& strategy) { return strategy.param; });

}  // namespace
}  // namespace paceline::sim
