#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/reference/testing.h"

namespace paceline::reference {
namespace {

Strategy sgp(int peers = 1, Strategy::Hops hops = Strategy::Hops::pow2) {
  return {.kind = Kind::sgp, .peers = peers, .hops = hops};
}

/// Everybody sends to the worker that far ahead.
Digraph circle(int workers, int hop) {
  Digraph out;
  for (int i = 0; i < workers; ++i) out.push_back({(i + hop) % workers});
  return out;
}

TEST(ReferenceTest, SgpAveragesEightExactlyInThreeSteps) {
  const auto rows = run(mixing_only(8, sgp(), 3));
  EXPECT_NEAR(row_of(rows, 0, 0).model[0], 3.5, 1e-12);
  EXPECT_NEAR(row_of(rows, 0, 1).model[0], 4.5, 1e-12);
  expect_models(rows, 2, Doubles(8, 3.5));
  for (const auto& hops : {std::vector{2, 4, 1}, std::vector{4, 1, 2}}) {
    Strategy phase = sgp();
    for (const int hop : hops) phase.digraphs.push_back(circle(8, hop));
    expect_models(run(mixing_only(8, phase, 3)), 2, Doubles(8, 3.5));
  }
}

TEST(ReferenceTest, SgpOfSixReproducesTheGoldenModels) {
  const auto rows = run(mixing_only(6, sgp(), 3));
  expect_models(rows, 2, {2.5, 2, 2.25, 2.5, 2.75, 3});
  for (const Row& row : rows) EXPECT_NEAR(row.weight, 1, 1e-12);
  EXPECT_EQ(group_of(rows, 0, 2), (std::vector{0, 2}));  // Hop 4.
}

TEST(ReferenceTest, TwoPeersOfTheBaseGraphAverageNineExactlyInTwoSteps) {
  expect_models(run(mixing_only(9, sgp(2, Strategy::Hops::base), 2)), 1, Doubles(9, 4));
}

TEST(ReferenceTest, TwoPeersOfPowersAdvanceByOne) {
  const auto rows = run(mixing_only(8, sgp(2), 3));
  EXPECT_EQ(group_of(rows, 7, 0), (std::vector{5, 6, 7}));
  EXPECT_EQ(group_of(rows, 7, 1), (std::vector{3, 5, 7}));
  EXPECT_EQ(group_of(rows, 7, 2), (std::vector{3, 6, 7}));
}

TEST(ReferenceInvariantTest, NoHopLeadsToItsOwnWorkerAndNoMassLeaks) {
  for (int workers = 1; workers <= 33; ++workers) {
    for (const auto hops : {Strategy::Hops::pow2, Strategy::Hops::base}) {
      for (int peers = 1; peers <= 3; ++peers) {
        const auto rows = run(mixing_only(workers, sgp(peers, hops), 6));
        std::vector<double> sum(6, 0);
        for (const Row& row : rows) {
          sum[static_cast<std::size_t>(row.step)] += row.model[0] * row.weight;
          EXPECT_NEAR(row.weight, 1, 1e-12);
          if (workers > 1) {
            EXPECT_GE(row.group.size(), 2u);
          }
        }
        for (const double s : sum) EXPECT_NEAR(s, workers * (workers - 1) / 2.0, 1e-9);
      }
    }
  }
}

TEST(ReferenceTest, AnIrregularGraphReproducesTheGoldenWeights) {
  Strategy strategy = sgp();
  strategy.digraphs = {{{0, 1, 2}, {1, 2}, {2, 3}, {3, 0}}};
  auto job = mixing_only(4, strategy, 300);
  job.start = {{4}, {0}, {0}, {0}};
  const auto rows = run(job);
  const auto expect_weights = [&](int step, const Doubles& weights) {
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(row_of(rows, i, step).weight, weights[static_cast<std::size_t>(i)], 1e-12);
  };
  expect_models(rows, 0, {1.6, 1.6, 1, 0});
  expect_weights(0, {5.0 / 6, 5.0 / 6, 4.0 / 3, 1});
  expect_models(rows, 1, {4.0 / 7, 1.6, 64.0 / 49, 4.0 / 7});
  expect_weights(1, {7.0 / 9, 25.0 / 36, 49.0 / 36, 7.0 / 6});
  expect_models(rows, 299, Doubles(4, 1));
  expect_weights(299, {12.0 / 13, 8.0 / 13, 16.0 / 13, 16.0 / 13});
  EXPECT_EQ(group_of(rows, 2, 0), (std::vector{0, 1, 2}));
  EXPECT_NEAR(summarise(job).model[0], 1, 1e-12);
}

TEST(ReferenceTest, SgpFromTheSpreadStartReproducesTheGoldenModels) {
  const auto rows = run(spread(sgp(), 2));
  expect_models(rows, 0, {5.25, 1.75, 5, 8.5});
  expect_models(rows, 1, {4.84375, 6.5625, 4.84375, 6.5625});
}

TEST(ReferenceTest, SgpWithNesterovMomentumReproducesTheGoldenModels) {
  auto job = spread(sgp(), 2);
  job.momentum = 0.5;
  job.nesterov = true;
  expect_models(run(job), 0, {5.625, 1.875, 5.25, 9});
  expect_models(run(job), 1, {635.0 / 128, 487.0 / 64, 635.0 / 128, 487.0 / 64});
}

TEST(ReferenceTest, SgpWaitsForItsInNeighboursOnly) {
  auto job = mixing_only(8, sgp(), 2);
  job.compute_s.assign(2, Doubles(8, 1));
  job.compute_s[0][0] = 5;
  const auto rows = run(job);
  EXPECT_EQ(row_of(rows, 0, 0).time_s, 5);
  EXPECT_EQ(row_of(rows, 1, 0).time_s, 5);
  EXPECT_EQ(row_of(rows, 7, 0).time_s, 1);
  EXPECT_EQ(row_of(rows, 3, 1).time_s, 6);  // Hop 2 from worker 1.
  EXPECT_EQ(row_of(rows, 4, 1).time_s, 2);
}

TEST(ReferenceReductionTest, SgpOnTheCompleteGraphIsAllreduce) {
  Strategy complete = sgp();
  complete.digraphs = {{{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}}};
  for (unsigned seed = 0; seed < 20; ++seed)
    expect_same(run(random_job(seed, complete, 20)), run(random_job(seed, {.kind = Kind::allreduce}, 20)));
}

// osgp ----------------------------------------------------------------------------------------------------------------

Strategy osgp(int bound, int peers = 1) { return {.kind = Kind::osgp, .peers = peers, .bound = bound}; }

TEST(ReferenceTest, OsgpReproducesTheGoldenModels) { expect_models(run(spread(osgp(1), 1)), 0, {4.5, 2, 5, 9}); }

TEST(ReferenceTest, OsgpWithBoundOneIsCtaGossip) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    // A pair's graph is the ring of two.
    auto job = random_job(seed, osgp(1), 20);
    job.workers.resize(2);
    job.start = {{1, 2}, {3, 4}};
    auto ring = job;
    ring.strategy = {.kind = Kind::d_psgd};
    expect_same(run(job), run(ring));
  }
}

TEST(ReferenceTest, OsgpWithBoundOneNeedsTheModelsOfTheStepsStart) {
  auto job = random_job(1, osgp(1), 12);
  const auto rows = run(job);
  std::vector<double> began(4, 0);
  for (int t = 0; t < 12; ++t) {
    std::vector<double> ends;
    for (int i = 0; i < 4; ++i) {
      const auto from = static_cast<std::size_t>((i + 4 - (t % 2 == 0 ? 1 : 2)) % 4), at = static_cast<std::size_t>(i);
      ends.push_back(std::max(began[at] + job.compute_s[static_cast<std::size_t>(t)][at], began[from]));
      EXPECT_NEAR(row_of(rows, i, t).time_s, ends.back(), 1e-9);
      EXPECT_NEAR(row_of(rows, i, t).weight, 1, 1e-12);
      EXPECT_TRUE(row_of(rows, i, t).fresh);
    }
    began = ends;
  }
}

TEST(ReferenceTest, OsgpGoesOnWithoutMessagesUpToItsBound) {
  auto job = mixing_only(2, osgp(3), 5);
  job.start = {{0}, {8}};
  job.compute_s = {{1, 5}};
  const auto rows = run(job);
  // The first exchange begins at 0 for both; the second one for worker 1 at 5 only.
  EXPECT_EQ(group_of(rows, 0, 0), (std::vector{0, 1}));
  EXPECT_NEAR(row_of(rows, 0, 0).model[0], 4, 1e-12);
  for (const int step : {1, 2}) {
    EXPECT_EQ(group_of(rows, 0, step), (std::vector{0}));
    EXPECT_EQ(row_of(rows, 0, step).time_s, step + 1);
    EXPECT_EQ(row_of(rows, 0, step).weight, 0.5);
    EXPECT_TRUE(row_of(rows, 0, step).fresh);
  }
  const Row late = row_of(rows, 0, 3);
  EXPECT_EQ(late.time_s, 5);
  EXPECT_EQ(late.group, (std::vector{0, 1}));
  EXPECT_FALSE(late.fresh);
  EXPECT_EQ(late.weight, 1);
  // Worker 0 sends no second message meanwhile.
  EXPECT_EQ(row_of(rows, 1, 0).time_s, 5);
  EXPECT_TRUE(row_of(rows, 1, 1).fresh);
  job.strategy.bound = 1;
  EXPECT_EQ(row_of(run(job), 0, 1).time_s, 5);
}

TEST(ReferenceInvariantTest, OsgpLosesNoMass) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const int bound = 1 + static_cast<int>(seed % 4);
    auto job = random_job(seed, osgp(bound, 1 + static_cast<int>(seed % 2)), 30);
    job.lr = 0;
    job.start = {{1, 2}, {4, 8}, {5, 7}, {2, 7}};
    const auto rows = run(job);
    EXPECT_EQ(rows.size(), 120u);
    for (const Row& row : rows) EXPECT_GT(row.weight, 0);
    EXPECT_NEAR(summarise(job).model[0], 3, 1e-9);
    EXPECT_NEAR(summarise(job).model[1], 6, 1e-9);
  }
}

}  // namespace
}  // namespace paceline::reference
