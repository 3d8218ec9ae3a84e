#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/support/reference/testing.h"

namespace paceline::reference {
namespace {

constexpr double kPi = 3.14159265358979323846;

TEST(ReferenceTest, DpsgdOnTheRingReproducesTheGoldenModels) {
  expect_models(run(spread({.kind = Kind::d_psgd}, 1)), 0, {4, 3.5, 6.5, 6.5});
  expect_models(run(spread({.kind = Kind::d_psgd, .atc = true}, 1)), 0, {14.0 / 3, 10.0 / 3, 41.0 / 6, 17.0 / 3});
}

TEST(ReferenceTest, DpsgdOnTheBipartiteGraphReproducesTheGoldenModels) {
  const auto rows = run(spread({.kind = Kind::d_psgd, .graph = Strategy::Graph::bipartite, .atc = true}, 2));
  expect_models(rows, 0, {5.25, 5, 5, 5.25});
  EXPECT_EQ(group_of(rows, 1, 0), (std::vector{1, 2}));
  EXPECT_EQ(group_of(rows, 1, 1), (std::vector{0, 1}));
}

TEST(ReferenceTest, RingsOfOneAndTwo) {
  auto pair = mixing_only(2, {.kind = Kind::d_psgd}, 1);
  expect_models(run(pair), 0, {0.5, 0.5});
  EXPECT_EQ(summarise(pair).messages, 2);
  for (const auto graph : {Strategy::Graph::ring, Strategy::Graph::bipartite, Strategy::Graph::complete}) {
    const auto alone = mixing_only(1, {.kind = Kind::d_psgd, .graph = graph}, 2);
    EXPECT_EQ(group_of(run(alone), 0, 1), (std::vector{0}));
    EXPECT_EQ(summarise(alone).messages, 0);
  }
}

TEST(ReferenceTest, TheRingsSecondEigenvalueIsTheGoldenOne) {
  for (const auto& [workers, eigenvalue] :
       std::map<int, double>{{4, 0.3333}, {8, 0.8047}, {16, 0.9493}, {64, 0.9968}}) {
    auto job = mixing_only(workers, {.kind = Kind::d_psgd}, 1);
    for (int i = 0; i < workers; ++i) job.start[static_cast<std::size_t>(i)] = {std::cos(2 * kPi * i / workers)};
    EXPECT_NEAR(row_of(run(job), 0, 0).model[0], eigenvalue, 5e-5);
  }
}

TEST(ReferenceInvariantTest, EveryBipartiteStepIsAPerfectMatchingAndACycleConnectsAll) {
  for (int workers = 2; workers <= 32; workers += 2) {
    const int steps = 2 * workers;
    const auto rows = run(mixing_only(workers, {.kind = Kind::d_psgd, .graph = Strategy::Graph::bipartite}, steps));
    std::set<int> reached{0};
    for (int repeat = 0; repeat < workers; ++repeat) {
      for (const Row& row : rows) {
        ASSERT_EQ(row.group.size(), 2u);
        EXPECT_EQ((row.group[0] + row.group[1]) % 2, 1);
        if (reached.count(row.group[0]) + reached.count(row.group[1]) > 0)
          reached.insert(row.group.begin(), row.group.end());
      }
    }
    EXPECT_EQ(reached.size(), static_cast<std::size_t>(workers));
  }
}

TEST(ReferenceInvariantTest, SymmetricMixingKeepsTheMeanAndSpreadsNothing) {
  const std::vector<Strategy> strategies{
      {.kind = Kind::d_psgd},
      {.kind = Kind::d_psgd, .graph = Strategy::Graph::bipartite, .atc = true},
      {.kind = Kind::d_psgd, .graph = Strategy::Graph::complete},
      {.kind = Kind::matcha, .matchings = {{{0, 1}, {2, 3}}, {{1, 2}}}, .alpha = 0.4, .active = {{0}, {}, {0, 1}}}};
  for (const Strategy& strategy : strategies) {
    auto job = mixing_only(6, strategy, 12);
    const auto rows = run(job);
    double distance = 1e9;
    for (int t = 0; t < 12; ++t) {
      double mean = 0, square = 0;
      for (const auto& [worker, x] : models(rows, t)) {
        mean += x / 6;
        square += (x - 2.5) * (x - 2.5);
      }
      EXPECT_NEAR(mean, 2.5, 1e-12);
      EXPECT_LE(square, distance + 1e-12);
      distance = square;
    }
  }
}

TEST(ReferenceTest, DelaysSpreadAlongTheRing) {
  // Worker 0 takes 5 s once. ATC waits for the neighbours' step, CTA for the model that they began it with.
  auto job = mixing_only(8, {.kind = Kind::d_psgd}, 4);
  job.compute_s.assign(4, Doubles(8, 1));
  job.compute_s[0][0] = 5;
  for (const bool atc : {false, true}) {
    job.strategy.atc = atc;
    const auto rows = run(job);
    for (int t = 0; t < 4; ++t) {
      for (int i = 0; i < 8; ++i) {
        const int distance = std::min(i, 8 - i), reached = atc ? t + 1 : t;
        const double on_time = t + 1, behind = t + 5;
        // CTA hides one step: whoever waits for a model computes meanwhile.
        const double late = atc ? behind : behind - distance;
        EXPECT_EQ(row_of(rows, i, t).time_s, distance <= reached ? std::max(on_time, late) : on_time)
            << "worker " << i << " step " << t << " atc " << atc;
      }
    }
  }
}

TEST(ReferenceReductionTest, DpsgdOnTheCompleteGraphIsAllreduce) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto expected = run(random_job(seed, {.kind = Kind::allreduce}, 20));
    expect_same(run(random_job(seed, {.kind = Kind::d_psgd, .graph = Strategy::Graph::complete, .atc = true}, 20)),
                expected);
  }
}

// matcha --------------------------------------------------------------------------------------------------------------

const std::vector<Edges> kFourRing{{{0, 1}, {2, 3}}, {{1, 2}, {3, 0}}};

TEST(ReferenceTest, MatchaReproducesTheGoldenModels) {
  Strategy matcha{.kind = Kind::matcha, .matchings = kFourRing, .alpha = 1.0 / 3, .active = {{0, 1}}};
  expect_models(run(spread(matcha, 1)), 0, {14.0 / 3, 10.0 / 3, 41.0 / 6, 17.0 / 3});
  matcha.alpha = 0.5;
  matcha.active = {{0}};
  expect_models(run(spread(matcha, 1)), 0, {1.75, 1.75, 8.5, 8.5});
}

TEST(ReferenceTest, MatchaWithAllMatchingsOfTheRingIsDpsgd) {
  auto job = random_job(3, {.kind = Kind::matcha, .matchings = kFourRing, .alpha = 1.0 / 3, .active = {{0, 1}}}, 20);
  auto ring = job;
  ring.strategy = {.kind = Kind::d_psgd, .atc = true};
  expect_same(run(job), run(ring));
}

TEST(ReferenceTest, MatchaWaitsForTheNeighboursOfActiveMatchingsOnly) {
  auto job = spread({.kind = Kind::matcha, .matchings = kFourRing, .alpha = 0.5, .active = {{}, {0}, {1}}}, 3);
  job.compute_s = {{1, 1, 1, 4}};
  const auto rows = run(job);
  expect_models(rows, 0, {0, 3.5, 6.5, 10.5});
  EXPECT_EQ(group_of(rows, 0, 0), (std::vector{0}));
  EXPECT_EQ(row_of(rows, 0, 1).time_s, 2);
  EXPECT_EQ(row_of(rows, 2, 1).time_s, 8);
  EXPECT_EQ(group_of(rows, 2, 1), (std::vector{2, 3}));
  EXPECT_EQ(row_of(rows, 0, 2).time_s, 12);
  EXPECT_EQ(row_of(rows, 1, 2).time_s, 9);
  EXPECT_EQ(summarise(job).messages, 8);
}

// ad-psgd -------------------------------------------------------------------------------------------------------------

TEST(ReferenceTest, AdPsgdReproducesTheGoldenModels) {
  auto job = spread({.kind = Kind::ad_psgd, .partners = {{3, 2, 1, 0}}}, 1);
  job.compute_s = {{3, 1, 2, 4}};
  const auto rows = run(job);
  EXPECT_NEAR(row_of(rows, 1, 0).model[0], 5, 1e-12);
  EXPECT_TRUE(row_of(rows, 1, 0).fresh);
  // Worker 2 took its gradient at 6 (g = -2), and is at 4.5 when it averages with 5.
  const Row two = row_of(rows, 2, 0);
  EXPECT_FALSE(two.fresh);
  EXPECT_NEAR(two.model[0], 4.75 + 0.5, 1e-12);
  EXPECT_EQ(two.group, (std::vector{1, 2}));
  EXPECT_EQ(two.loss, 0.5 * 1 * 4);
}

TEST(ReferenceTest, AdPsgdWaitsForNobody) {
  auto job = random_job(5, {.kind = Kind::ad_psgd, .partners = {{1, 0, 3, 2}, {2, 3, 0, 1}, {0, 2, 1, 3}}}, 30);
  for (const double wait : summarise(job).wait_s) EXPECT_NEAR(wait, 0, 1e-9);
  for (const Row& row : run(job)) EXPECT_EQ(row.group.size(), row.step % 3 == 2 && row.worker % 3 == 0 ? 1u : 2u);
}

TEST(ReferenceInvariantTest, AdPsgdsExchangesKeepTheSum) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    auto job = random_job(seed, {.kind = Kind::ad_psgd, .partners = {{1, 2, 3, 0}, {3, 3, 0, 1}}}, 25);
    job.lr = 0;
    job.start = {{1, 2}, {4, 8}, {5, 7}, {2, 7}};
    EXPECT_NEAR(summarise(job).model[0], 3, 1e-12);
    EXPECT_NEAR(summarise(job).model[1], 6, 1e-12);
    for (const Row& row : run(job)) {
      EXPECT_GE(row.model[0], 1);
      EXPECT_LE(row.model[0], 5);
    }
  }
}

TEST(ReferenceTest, AdPsgdCopiesForTheNextStepAtOnce) {
  // Both end at 1: worker 0 exchanges and copies, then worker 1's exchange makes that copy an old one.
  auto job = mixing_only(2, {.kind = Kind::ad_psgd, .partners = {{1, 0}}}, 2);
  const auto rows = run(job);
  EXPECT_TRUE(row_of(rows, 0, 0).fresh);
  EXPECT_FALSE(row_of(rows, 1, 0).fresh);
  EXPECT_FALSE(row_of(rows, 0, 1).fresh);
}

}  // namespace
}  // namespace paceline::reference
