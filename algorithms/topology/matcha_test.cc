#include "algorithms/topology/matcha.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "algorithms/topology/edge_colouring.h"
#include "algorithms/topology/mixing.h"
#include "algorithms/topology/mixing_test_support.h"
#include "runtime/base/splitmix.h"

namespace paceline::algorithms {
namespace {

using Matchings = std::vector<std::vector<Edge>>;

/// Eigenvalues of a symmetric matrix, ascending (Jacobi's rotations).
Vector eigenvalues(Dense a) {
  const std::size_t n = a.size();
  for (int sweep = 0; sweep < 30; ++sweep)
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        const double angle = 0.5 * std::atan2(2 * a[p][q], a[q][q] - a[p][p]);
        const double c = std::cos(angle), s = std::sin(angle);
        for (std::size_t k = 0; k < n; ++k) {
          const double kp = a[k][p], kq = a[k][q];
          a[k][p] = c * kp - s * kq;
          a[k][q] = s * kp + c * kq;
        }
        for (std::size_t k = 0; k < n; ++k) {
          const double pk = a[p][k], qk = a[q][k];
          a[p][k] = c * pk - s * qk;
          a[q][k] = s * pk + c * qk;
        }
      }
  Vector values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(a[i][i]);
  std::sort(values.begin(), values.end());
  return values;
}

/// sum_j weights_j L_j.
Dense laplacian(const Matchings& matchings, std::int32_t nodes, const Vector& weights) {
  Dense sum(at(nodes), Vector(at(nodes)));
  for (std::size_t j = 0; j < matchings.size(); ++j)
    for (const auto& [a, b] : matchings[j]) {
      sum[at(a)][at(a)] += weights[j];
      sum[at(b)][at(b)] += weights[j];
      sum[at(a)][at(b)] -= weights[j];
      sum[at(b)][at(a)] -= weights[j];
    }
  return sum;
}

double lambda_2(const Matcha& matcha, const Vector& p) {
  return eigenvalues(laplacian(matcha.matchings, matcha.nodes, p))[1];
}

/// || E[W'W] - J ||, by going through all draws of the matchings.
double rho_of(const Matcha& matcha) {
  const auto n = at(matcha.nodes);
  Dense expected(n, Vector(n, -1.0 / matcha.nodes));
  for (unsigned draw = 0; draw < 1u << matcha.matchings.size(); ++draw) {
    double probability = 1;
    Vector active;
    for (std::size_t j = 0; j < matcha.matchings.size(); ++j) {
      active.push_back(draw >> j & 1);
      probability *= active[j] != 0 ? matcha.probabilities[j] : 1 - matcha.probabilities[j];
    }
    auto w = laplacian(matcha.matchings, matcha.nodes, active);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) w[i][j] = (i == j ? 1 : 0) - matcha.alpha * w[i][j];
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t k = 0; k < n; ++k) expected[i][j] += probability * w[k][i] * w[k][j];
  }
  const auto values = eigenvalues(expected);
  return std::max(std::abs(values.front()), std::abs(values.back()));
}

TEST(MatchaTest, TheEightNodesHaveThePublishedSpectrum) {
  const auto sut = make_matcha(eight_node_graph(), 1).value();
  EXPECT_EQ(sut.probabilities, Vector(5, 1.0));
  expect_near(eigenvalues(laplacian(sut.matchings, 8, sut.probabilities)),
              {0, .67, 1.6144, 2.411, 3, 4.589, 5.3856, 6.33}, 5e-4);
  EXPECT_NEAR(sut.alpha, .2857, 1e-4);
  EXPECT_NEAR(sut.rho, .6538, 1e-4);
  EXPECT_NEAR(sut.rho, rho_of(sut), 1e-9);
}

TEST(MatchaTest, HalfTheTrafficMixesTheEightNodesBetterThanAllOfIt) {
  const auto sut = make_matcha(eight_node_graph(), .5).value();
  expect_near(sut.probabilities, {.984, 0, .758, .758, 0}, 1e-2);
  EXPECT_NEAR(lambda_2(sut, sut.probabilities), .5612, 1e-4);
  EXPECT_NEAR(sut.alpha, .396, 1e-3);
  EXPECT_NEAR(sut.rho, .644, 1e-3);
  EXPECT_NEAR(make_matcha(eight_node_graph(), .4)->rho, .705, 1e-3);
  EXPECT_NEAR(make_matcha(eight_node_graph(), .2)->rho, .858, 1e-3);
}

TEST(MatchaTest, RingsAreThoseOfTheSpecification) {
  const auto four = make_matcha(ring_graph(4), 1).value();
  EXPECT_NEAR(four.alpha, 1.0 / 3, 1e-12);
  EXPECT_NEAR(four.rho, 1.0 / 9, 1e-12);
  const auto half = make_matcha(ring_graph(4), .5).value();
  expect_near(half.probabilities, {.5, .5}, 1e-6);
  EXPECT_NEAR(half.alpha, .5, 1e-6);
  EXPECT_NEAR(half.rho, .5, 1e-6);
  const auto eight = make_matcha(ring_graph(8), 1).value();
  EXPECT_NEAR(eight.alpha, .43613, 1e-5);
  EXPECT_NEAR(eight.rho, .55431, 1e-5);
  const auto half_of_eight = make_matcha(ring_graph(8), .5).value();
  expect_near(half_of_eight.probabilities, {.5, .5}, 1e-6);
  EXPECT_NEAR(half_of_eight.alpha, .60737, 1e-5);
  EXPECT_NEAR(half_of_eight.rho, .78391, 1e-5);
}

TEST(MatchaTest, NoOtherProbabilitiesAndNoOtherAlphaAreBetter) {
  const Graph graph{.nodes = 7, .edges = {{0, 1}, {1, 2}, {2, 0}, {2, 3}, {3, 4}, {4, 5}, {5, 3}, {5, 6}, {6, 1}}};
  for (const double budget : {.15, .5, .8, .95}) {
    const auto sut = make_matcha(graph, budget).value();
    const double bound = budget * static_cast<double>(sut.matchings.size());
    const double best = lambda_2(sut, sut.probabilities);
    EXPECT_LE(std::accumulate(sut.probabilities.begin(), sut.probabilities.end(), 0.0), bound + 1e-5);
    EXPECT_GT(best, 0);
    for (int trial = 0; trial < 300; ++trial) {
      Vector p = sut.probabilities;
      for (std::size_t j = 0; j < p.size(); ++j)
        p[j] = std::clamp(p[j] + .1 * (draw_uniform(1, trial, static_cast<std::int64_t>(j)) - .5), 0.0, 1.0);
      const double sum = std::accumulate(p.begin(), p.end(), 0.0);
      for (double& value : p) value *= std::min(1.0, bound / sum);
      EXPECT_LE(lambda_2(sut, p), best + 1e-5) << trial;
    }
    EXPECT_NEAR(sut.rho, rho_of(sut), 1e-9);
    EXPECT_LT(sut.rho, 1);
    for (const double factor : {.9, .99, 1.01, 1.1}) {
      Matcha other = sut;
      other.alpha *= factor;
      EXPECT_GE(rho_of(other), sut.rho - 1e-9);
    }
  }
}

TEST(MatchaTest, BudgetOneIsTheLimitOfTheOthers) {
  const auto all = make_matcha(eight_node_graph(), 1).value(), nearly = make_matcha(eight_node_graph(), .99999).value();
  expect_near(nearly.probabilities, all.probabilities, 1e-3);
  EXPECT_NEAR(nearly.alpha, all.alpha, 1e-3);
  EXPECT_NEAR(nearly.rho, all.rho, 1e-3);
}

TEST(MatchaTest, OneWorkerHasNothingToMix) {
  const auto sut = make_matcha(ring_graph(1), .5).value();
  EXPECT_TRUE(sut.matchings.empty());
  EXPECT_EQ(matching_mixing(sut, 0)->row(Rank(0), Version(0)), (std::vector<scheduler::Share>{{Rank(0), 1}}));
}

TEST(MatchaTest, SixtyFourWorkersAreNoTrouble) {
  Graph graph{.nodes = 64, .edges = {}};
  for (std::int32_t i = 0; i < 64; ++i)
    for (const std::int32_t hop : {1, 5, 17}) graph.edges.push_back({i, (i + hop) % 64});
  const auto sut = make_matcha(graph, .3).value();
  EXPECT_EQ(sut.matchings.size(), 6u);
  EXPECT_LT(sut.rho, .72);
}

TEST(MatchaTest, WhatIsWrongIsNamed) {
  const auto text = [](Matchings matchings, std::int32_t nodes, double budget) {
    return make_matcha(std::move(matchings), nodes, budget).error().text;
  };
  for (const double budget : {0.0, -1.0, 1.5, std::nan("")})
    EXPECT_EQ(make_matcha(ring_graph(4), budget).error().text,
              "matcha's budget is the share of the matchings that is active on average, not " + std::to_string(budget) +
                  ": give one above 0 and up to 1");
  EXPECT_EQ(make_matcha(ring_graph(129), .5).error().text,
            "matcha takes 1 to 128 workers, not 129: use fewer workers, or a mixing with fixed weights");
  EXPECT_EQ(make_matcha(Graph{.nodes = 4, .edges = {{0, 1}, {2, 3}}}, .5).error().text,
            "matcha needs a connected graph, and from 0 no path leads to 2: add an edge between the parts");
  EXPECT_EQ(text({{{0, 1}, {1, 2}}}, 3, .5),
            "matching 0, edge 1 2: a rank is twice in this matching: put the edge into another one");
  EXPECT_EQ(text({{{0, 0}}}, 3, .5),
            "matching 0, edge 0 0: a rank is twice in this matching: put the edge into another one");
  EXPECT_EQ(text({{{0, 1}}, {{1, 0}}}, 2, .5), "matching 1, edge 1 0: is given twice: remove one");
  EXPECT_EQ(text({{{0, 2}}}, 2, .5),
            "matching 0, edge 0 2: a rank is out of range: ranks are 0 to the number of workers - 1");
  EXPECT_EQ(text({{{0, 1}}, {}}, 2, .5), "matching 1 is empty: leave it out");
}

TEST(MatchingMixingTest, StepsOfTheFourRingAreThoseOfTheSpecification) {
  const Vector x{0, 3.5, 6.5, 10.5};
  expect_near(mixed(*matching_mixing(make_matcha(ring_graph(4), 1).value(), 7), x, 0),
              {14.0 / 3, 10.0 / 3, 41.0 / 6, 17.0 / 3});
  const auto half = make_matcha(ring_graph(4), .5).value();
  std::int64_t v = 0;
  while (active_matchings(half, 7, Version(v)) != std::vector<std::size_t>{0}) ++v;
  expect_near(mixed(*matching_mixing(half, 7), x, v), {1.75, 1.75, 8.5, 8.5}, 1e-6);
}

TEST(MatchingMixingTest, EveryDrawIsSymmetricAndSound) {
  for (std::int32_t workers = 2; workers <= 33; ++workers) {
    Matcha matcha{.nodes = workers, .matchings = matchings_of(ring_graph(workers)), .probabilities = {}, .alpha = .3};
    matcha.probabilities.assign(matcha.matchings.size(), .5);
    const auto sut = matching_mixing(matcha, 3);
    for (std::int64_t v = 0; v < 8; ++v) {
      expect_sound(*sut, workers, v, Sums::both);
      EXPECT_TRUE(is_symmetric(*sut, workers, v));
    }
    EXPECT_TRUE(is_connected(*sut, workers, 40));
  }
}

TEST(MatchingMixingTest, ARowNamesItsOwnRankEvenWhereItKeepsNothing) {
  const auto sut =
      matching_mixing({.nodes = 3, .matchings = {{{0, 1}}, {{1, 2}}}, .probabilities = {1, 1}, .alpha = .5}, 0);
  EXPECT_EQ(sut->row(Rank(1), Version(0)), (std::vector<scheduler::Share>{{Rank(0), .5}, {Rank(1), 0}, {Rank(2), .5}}));
}

TEST(MatchingMixingTest, MatchingsAreActiveAsOftenAsTheyShouldBe) {
  const auto matcha = make_matcha(eight_node_graph(), .5).value();
  Vector count(5);
  for (std::int64_t v = 0; v < 20'000; ++v) {
    for (const std::size_t j : active_matchings(matcha, 11, Version(v))) {
      EXPECT_LT(draw_uniform(11, v, static_cast<std::int64_t>(j)), matcha.probabilities[j]);
      count[j] += 1.0 / 20'000;
    }
  }
  expect_near(count, matcha.probabilities, 0.015);
  EXPECT_EQ(count[1], 0);
}

TEST(MatchingMixingTest, AnotherSeedDrawsOthers) {
  const auto matcha = make_matcha(ring_graph(6), .5).value();
  const auto draws = [&](std::uint64_t seed) {
    std::vector<std::vector<std::size_t>> active;
    for (std::int64_t v = 0; v < 30; ++v) active.push_back(active_matchings(matcha, seed, Version(v)));
    return active;
  };
  EXPECT_EQ(draws(1), draws(1));
  EXPECT_NE(draws(1), draws(2));
}

}  // namespace
}  // namespace paceline::algorithms
