#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/reference/testing.h"

namespace paceline::reference {
namespace {

using Matrix = std::vector<Doubles>;

// Consensus: unit noise added to every worker at every step -----------------------------------------------------------

/// Stationary mean square distance from the mean, right after averaging. All weights within a group are equal.
double consensus(int workers, const Strategy& strategy, int cycles = 2) {
  const int cycle = 120;  // A multiple of all that alternates.
  const auto n = static_cast<std::size_t>(workers);
  std::vector<std::vector<std::vector<int>>> groups(cycle, std::vector<std::vector<int>>(n));
  for (const Row& row : run(mixing_only(workers, strategy, cycle)))
    groups[static_cast<std::size_t>(row.step)][static_cast<std::size_t>(row.worker)] = row.group;
  std::vector<Doubles> covariance(n, Doubles(n, 0));
  double distance = 0;
  for (int step = 0; step < cycles * cycle; ++step) {
    for (std::size_t i = 0; i < n; ++i) covariance[i][i] += 1;
    for (int side = 0; side < 2; ++side) {
      std::vector<Doubles> mixed(n, Doubles(n, 0));  // W C, transposed.
      for (std::size_t i = 0; i < n; ++i) {
        const auto& group = groups[static_cast<std::size_t>(step % cycle)][i];
        for (const int j : group)
          for (std::size_t k = 0; k < n; ++k)
            mixed[k][i] += covariance[static_cast<std::size_t>(j)][k] / static_cast<double>(group.size());
      }
      covariance = std::move(mixed);
    }
    if (step < (cycles - 1) * cycle) continue;
    double trace = 0, all = 0;
    for (std::size_t i = 0; i < n; ++i) {
      trace += covariance[i][i];
      for (const double c : covariance[i]) all += c;
    }
    distance += (trace - all / workers) / workers / cycle;
  }
  return distance;
}

Digraph ahead(int workers, const std::vector<int>& hops) {
  Digraph out(static_cast<std::size_t>(workers));
  for (int i = 0; i < workers; ++i)
    for (const int hop : hops) out[static_cast<std::size_t>(i)].push_back((i + hop) % workers);
  return out;
}

TEST(ReferenceFiguresTest, ConsensusOfSixtyFourWorkers) {
  EXPECT_NEAR(consensus(64, wagma(8, 10)), .0984, 5e-5);
  EXPECT_NEAR(consensus(64, wagma(8, 100000)), .1094, 5e-5);
  EXPECT_NEAR(consensus(64, wagma(4, 10)), .2484, 5e-5);
  EXPECT_NEAR(consensus(64, {.kind = Kind::sgp, .peers = 2}), .562, 5e-4);
  EXPECT_NEAR(consensus(64, {.kind = Kind::sgp, .peers = 2, .hops = Strategy::Hops::base}), .441, 5e-4);
  EXPECT_NEAR(
      consensus(
          64, {.kind = Kind::sgp, .peers = 2, .digraphs = {ahead(64, {1, 2}), ahead(64, {4, 8}), ahead(64, {16, 32})}}),
      .457, 5e-4);
  EXPECT_NEAR(consensus(64, {.kind = Kind::hier_avg, .group = 8, .k1 = 1, .k2 = 10}), .4922, 5e-5);
  EXPECT_NEAR(consensus(64, {.kind = Kind::sgp}), .8906, 5e-5);
  EXPECT_NEAR(consensus(64, {.kind = Kind::local_sgd, .period = 10}), 4.4297, 5e-5);
  EXPECT_NEAR(consensus(64, {.kind = Kind::d_psgd, .atc = true}, 24), 7.443, 5e-4);
}

TEST(ReferenceFiguresTest, ConsensusOfSixteenWorkers) {
  EXPECT_NEAR(consensus(16, wagma(4, 8)), .1641, 5e-5);
  EXPECT_NEAR(consensus(16, wagma(2, 8)), .5625, 5e-5);
  EXPECT_NEAR(consensus(16, {.kind = Kind::sgp, .peers = 2}), .3933, 5e-5);
  EXPECT_NEAR(consensus(16, {.kind = Kind::sgp}), .6875, 5e-5);
  EXPECT_NEAR(consensus(16, {.kind = Kind::hier_avg, .group = 4, .k1 = 1, .k2 = 8}), .6562, 1e-4);
  EXPECT_NEAR(consensus(16, {.kind = Kind::d_psgd, .atc = true}), 1.472, 5e-4);
  EXPECT_NEAR(consensus(16, {.kind = Kind::local_sgd, .period = 8}), 3.281, 5e-4);
}

// matcha: how fast a step of random matchings contracts ---------------------------------------------------------------

Matrix mixing_matrix(int workers, Strategy matcha, unsigned active) {
  matcha.active = {{}};
  for (int j = 0; j < static_cast<int>(matcha.matchings.size()); ++j)
    if ((active >> j & 1u) != 0) matcha.active[0].push_back(j);
  auto job = mixing_only(workers, matcha, 1);
  for (std::size_t i = 0; i < job.start.size(); ++i) {
    job.start[i].assign(job.start.size(), 0);
    job.start[i][i] = 1;
    job.workers[i] = {job.start[i], job.start[i]};
  }
  Matrix w;
  for (int i = 0; i < workers; ++i) w.push_back(row_of(run(job), i, 0).model);
  return w;
}

/// The norm of E[W^T W] - J, by power iteration.
double contraction(int workers, const std::vector<Edges>& matchings, const Doubles& probability, double alpha) {
  const auto n = static_cast<std::size_t>(workers);
  Matrix expected(n, Doubles(n, -1.0 / workers));
  for (unsigned active = 0; active < 1u << matchings.size(); ++active) {
    double likely = 1;
    for (std::size_t j = 0; j < matchings.size(); ++j)
      likely *= (active >> j & 1u) != 0 ? probability[j] : 1 - probability[j];
    if (likely == 0) continue;
    const Matrix w = mixing_matrix(workers, {.kind = Kind::matcha, .matchings = matchings, .alpha = alpha}, active);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t k = 0; k < n; ++k) expected[i][j] += likely * w[k][i] * w[k][j];
  }
  Doubles v;
  for (std::size_t i = 0; i < n; ++i) v.push_back(std::sin(1.0 + static_cast<double>(i * i)));
  double norm = 0;
  for (int iteration = 0; iteration < 3000; ++iteration) {
    Doubles next(n, 0);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) next[i] += expected[i][j] * v[j];
    norm = 0;
    for (const double x : next) norm += x * x;
    norm = std::sqrt(norm);
    for (double& x : next) x /= norm;
    v = next;
  }
  return norm;
}

TEST(ReferenceFiguresTest, RandomMatchingsContractAsComputed) {
  const std::vector<Edges> four_ring{{{0, 1}, {2, 3}}, {{1, 2}, {3, 0}}};
  EXPECT_NEAR(contraction(4, four_ring, {1, 1}, 1.0 / 3), 1.0 / 9, 1e-9);
  EXPECT_NEAR(contraction(4, four_ring, {.5, .5}, .5), .5, 1e-9);
  const std::vector<Edges> eight_ring{{{0, 1}, {2, 3}, {4, 5}, {6, 7}}, {{1, 2}, {3, 4}, {5, 6}, {7, 0}}};
  EXPECT_NEAR(contraction(8, eight_ring, {1, 1}, .43613), .55431, 2e-5);
  EXPECT_NEAR(contraction(8, eight_ring, {.5, .5}, .60737), .78391, 2e-5);
  const std::vector<Edges> graph_zero{
      {{1, 5}, {6, 7}, {0, 4}, {2, 3}}, {{1, 7}, {3, 6}}, {{1, 0}, {3, 7}, {5, 6}}, {{1, 2}, {7, 0}}, {{3, 1}}};
  EXPECT_NEAR(contraction(8, graph_zero, {1, 1, 1, 1, 1}, .2857), .6538, 1e-4);
  EXPECT_NEAR(contraction(8, graph_zero, {.984, 0, .758, .758, 0}, .396), .644, 1e-3);
}

}  // namespace
}  // namespace paceline::reference
