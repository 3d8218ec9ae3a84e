#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "tests/support/reference/testing.h"

namespace paceline::reference {
namespace {

// Long runs: unit compute, P = 4, S = 2, sync = 10 --------------------------------------------------------------------

struct Figures {
  double time_per_step;
  double share;
};

Figures long_run(Strategy strategy, const std::vector<std::vector<double>>& compute) {
  auto job = t4(strategy, 5000);
  job.compute_s = compute;
  const auto rows = run(job);
  return {rows.back().time_s / job.steps, static_cast<double>(rows.size()) / (4.0 * job.steps)};
}

void expect_figures(const Figures& found, double time_per_step, double share) {
  EXPECT_NEAR(found.time_per_step, time_per_step, 0.05 * time_per_step);
  EXPECT_NEAR(found.share, share, 0.05 * share);
}

TEST(ReferenceLongRunTest, OneWorkerIsAlwaysFourTimesSlower) {
  const std::vector<std::vector<double>> compute{{1, 1, 1, 4}};
  expect_figures(long_run(wagma(2, 10), compute), 4.0, 1.0);
  expect_figures(long_run(wagma(2, 10, true), compute), 1.20, 0.82);
  expect_figures(long_run(wagma(2, 10, true, 1), compute), 1.07, 0.82);
}

TEST(ReferenceLongRunTest, OneRandomWorkerIsDelayedByFiveEachStep) {
  std::mt19937 random(1);
  std::vector<std::vector<double>> compute(5000, {1, 1, 1, 1});
  for (auto& row : compute) row[random() % 4] += 5;
  expect_figures(long_run(wagma(2, 10), compute), 3.1, 1.0);
  expect_figures(long_run(wagma(2, 10, true), compute), 1.5, 0.57);
  expect_figures(long_run(wagma(2, 10, true, 1), compute), 1.2, 0.51);
}

// Random delays: two of P workers are 0.32 s late at each step, compute 0.64 s ----------------------------------------

double time_per_step(int workers, const Strategy& strategy, double compute, int steps = 300) {
  std::mt19937 random(7);
  auto job = mixing_only(workers, strategy, steps);
  job.compute_s.assign(static_cast<std::size_t>(steps), Doubles(static_cast<std::size_t>(workers), compute));
  for (auto& row : job.compute_s) {
    const std::size_t first = random() % row.size(), second = (first + 1 + random() % (row.size() - 1)) % row.size();
    row[first] += 0.32;
    row[second] += 0.32;
  }
  return summarise(job).virtual_s / steps;
}

TEST(ReferenceFiguresTest, WaitAvoidingHidesRandomDelays) {
  const double allreduce = time_per_step(64, {.kind = Kind::allreduce}, 0.64);
  EXPECT_NEAR(allreduce, 0.960, 1e-9);
  for (const auto& [sync, expected] :
       std::map<int, double>{{1, .960}, {2, .810}, {5, .738}, {10, .709}, {20, .687}, {50, .672}})
    EXPECT_NEAR(time_per_step(64, wagma(8, sync), 0.64), expected, 0.01) << sync;
  EXPECT_NEAR(allreduce / time_per_step(64, wagma(8, 10), 0.64), 1.35, 0.02);
  EXPECT_NEAR(0.62 / time_per_step(64, wagma(8, 10), 0.30), 1.68, 0.04);
  EXPECT_NEAR(0.96 / time_per_step(256, wagma(16, 10), 0.64, 100), 1.39, 0.03);
}

TEST(ReferenceFiguresTest, WithoutTheCostOfMessagesGossipIsHardlySlower) {
  const double base = time_per_step(64, wagma(8, 10), 0.64);
  EXPECT_NEAR(time_per_step(64, {.kind = Kind::d_psgd, .atc = true}, 0.64) / base, 1.02, 0.02);
  EXPECT_NEAR(time_per_step(64, {.kind = Kind::sgp}, 0.64) / base, 1.04, 0.02);
  EXPECT_NEAR(time_per_step(64, {.kind = Kind::sgp, .peers = 2}, 0.64) / base, 1.07, 0.02);
  // What needs the models of the step's start only is faster.
  EXPECT_NEAR(time_per_step(64, {.kind = Kind::d_psgd}, 0.64) / base, 0.93, 0.02);
}

TEST(ReferenceFiguresTest, RandomTimesAreAveragedByALongPeriod) {
  // 16 workers, exponential times of mean 1: the mean over tau of the slowest. tau = 1: H_16.
  std::mt19937 random(3);
  std::exponential_distribution<double> time(1);
  for (const auto& [period, expected] :
       std::map<int, double>{{1, 3.381}, {2, 2.587}, {5, 1.936}, {10, 1.634}, {20, 1.433}, {100, 1.185}}) {
    auto job = mixing_only(16, {.kind = Kind::local_sgd, .period = period}, 2000);
    job.compute_s.assign(2000, Doubles(16, 0));
    for (auto& row : job.compute_s)
      for (double& t : row) t = time(random);
    EXPECT_NEAR(summarise(job).virtual_s / job.steps, expected, 0.05 * expected) << period;
  }
}

TEST(ReferenceFiguresTest, HalfFastHalfSlowNonblockingHasOneAndAHalfTimesTheThroughput) {
  auto job = t4({.kind = Kind::nonblocking, .batches = 4}, 20);
  job.compute_s = {{1, 1, 2, 2}};
  int batches = 0;
  for (const Row& row : run(job)) batches += row.batches_done;
  // Synchronous: 16 mini-batches in 8 s.
  EXPECT_NEAR(batches / summarise(job).virtual_s / 2, 1.5, 1e-9);
}

TEST(ReferenceFiguresTest, GroupsOfEightReachSixtyFourInTwoStepsGossipInSix) {
  const auto spread_of = [](const Strategy& strategy, int step) {
    double most = 0;
    for (const auto& [worker, x] : models(run(mixing_only(64, strategy, step + 1)), step))
      most = std::max(most, std::abs(x - 31.5));
    return most;
  };
  EXPECT_GT(spread_of(wagma(8, 1000), 0), 1);
  EXPECT_LT(spread_of(wagma(8, 1000), 1), 1e-12);
  EXPECT_GT(spread_of({.kind = Kind::sgp}, 4), 0.1);
  EXPECT_LT(spread_of({.kind = Kind::sgp}, 5), 1e-12);
}

}  // namespace
}  // namespace paceline::reference
