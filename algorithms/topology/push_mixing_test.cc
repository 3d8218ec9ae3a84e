#include <gtest/gtest.h>

#include <numeric>

#include "algorithms/topology/mixing.h"
#include "algorithms/topology/mixing_test_support.h"

namespace paceline::algorithms {
namespace {

const Vector x{0, 3, 6, 9};  // Four workers, their gradients at x, learning rate 1/4.
const Vector g{0, -2, -2, -6};

/// To whom rank 0 sends: the hops of a version.
std::vector<std::int32_t> hops(std::int32_t workers, std::int32_t peers, Hops kind, std::int64_t v) {
  std::vector<std::int32_t> hops;
  for (const Rank to : directed_mixing(workers, peers, kind).value()->receivers(Rank(0), Version(v)))
    hops.push_back(to.value);
  return hops;
}

Vector counting(std::int32_t workers) {
  Vector values(at(workers));
  std::iota(values.begin(), values.end(), 0.0);
  return values;
}

TEST(DirectedMixingTest, EightWorkersHaveTheMeanAfterThreeSteps) {
  const auto sut = directed_mixing(8, 1, Hops::pow2).value();
  Vector values = mixed(*sut, counting(8), 0);
  EXPECT_DOUBLE_EQ(values[0], 3.5);
  values = mixed(*sut, values, 1);
  EXPECT_DOUBLE_EQ(values[0], 4.5);
  EXPECT_EQ(mixed(*sut, values, 2), Vector(8, 3.5));
}

TEST(DirectedMixingTest, PowersOfTwoHaveTheMeanAfterLog2StepsFromAnyPhase) {
  for (std::int32_t steps = 1; steps <= 5; ++steps) {
    const std::int32_t workers = 1 << steps;
    const auto sut = directed_mixing(workers, 1, Hops::pow2).value();
    for (std::int64_t start = 0; start < steps; ++start) {
      Vector values = counting(workers);
      for (std::int64_t v = start; v < start + steps; ++v) values = mixed(*sut, values, v);
      expect_near(values, Vector(at(workers), (workers - 1) / 2.0));
    }
  }
}

TEST(DirectedMixingTest, SixWorkersComeCloseInThreeSteps) {
  const auto sut = directed_mixing(6, 1, Hops::pow2).value();
  Vector values = counting(6);
  for (std::int64_t v = 0; v < 3; ++v) values = mixed(*sut, values, v);
  expect_near(values, {2.5, 2, 2.25, 2.5, 2.75, 3});
  EXPECT_EQ(hops(6, 1, Hops::pow2, 2), std::vector{4});
}

TEST(DirectedMixingTest, TheOtherBaseGivesNineWorkersTheMeanInTwoSteps) {
  const auto sut = directed_mixing(9, 2, Hops::base_p1).value();
  expect_near(mixed(*sut, mixed(*sut, counting(9), 0), 1), Vector(9, 4.0));
}

TEST(DirectedMixingTest, MorePeersTakeTheNextPowersAndMoveOnByOne) {
  EXPECT_EQ(hops(16, 2, Hops::pow2, 0), (std::vector{1, 2}));
  EXPECT_EQ(hops(16, 2, Hops::pow2, 1), (std::vector{2, 4}));
  EXPECT_EQ(hops(16, 2, Hops::pow2, 3), (std::vector{1, 8}));
  EXPECT_EQ(hops(4, 9, Hops::pow2, 1), (std::vector{1, 2}));  // There are no more.
  EXPECT_EQ(hops(64, 2, Hops::base_p1, 0), (std::vector{1, 2}));
  EXPECT_EQ(hops(64, 2, Hops::base_p1, 1), (std::vector{3, 6}));
  EXPECT_EQ(hops(64, 2, Hops::base_p1, 3), (std::vector{27, 54}));
  EXPECT_EQ(hops(64, 2, Hops::base_p1, 4), (std::vector{1, 2}));
}

TEST(DirectedMixingTest, HopsThatLeadHomeOrComeTwiceAreDropped) {
  EXPECT_EQ(hops(6, 2, Hops::base_p1, 1), std::vector{3});             // 6 = 0.
  EXPECT_EQ(hops(8, 3, Hops::base_p1, 1), std::vector{4});             // 8 = 0, 12 = 4.
  EXPECT_EQ(hops(4, 2, Hops::base_p1, 1), (std::vector{2, 3}));        // 6 = 2.
  EXPECT_EQ(hops(3, 100, Hops::base_p1, 0), (std::vector{1, 2}));      // Everybody.
  EXPECT_EQ(hops(244, 2, Hops::base_p1, 5), (std::vector{242, 243}));  // 3^5 is reached exactly.
}

TEST(DirectedMixingTest, EveryPlanIsDoublyStochasticSoundAndConnected) {
  for (std::int32_t workers = 1; workers <= 33; ++workers)
    for (const Hops kind : {Hops::pow2, Hops::base_p1})
      for (const std::int32_t peers : {1, 2, 3, 5}) {
        const auto sut = directed_mixing(workers, peers, kind).value();
        for (std::int64_t v = 0; v < 7; ++v) {
          expect_sound(*sut, workers, v, Sums::both);
          EXPECT_EQ(sut->receivers(Rank(0), Version(v)).empty(), workers == 1);
        }
        EXPECT_TRUE(is_connected(*sut, workers, 7)) << workers << " " << peers;
      }
}

TEST(DirectedMixingTest, WithoutPeersIsRefused) {
  EXPECT_EQ(directed_mixing(4, 0, Hops::pow2).error().text,
            "a worker cannot push to 0 peers: peers must be at least 1");
}

TEST(DirectedMixingTest, TwoStepsOfPushSumAreThoseOfTheSpecification) {
  const auto sut = directed_mixing(4, 1, Hops::pow2).value();
  Vector values = mixed(*sut, {0, 3.5, 6.5, 10.5}, 0);
  expect_near(values, {5.25, 1.75, 5, 8.5});
  const Vector a{1, 2, 1, 2}, c{0, 4, 8, 12};  // Gradients a (x - c).
  for (std::size_t i = 0; i < 4; ++i) values[i] -= a[i] * (values[i] - c[i]) / 4;
  expect_near(mixed(*sut, values, 1), {4.84375, 6.5625, 4.84375, 6.5625});

  Vector overlapped = mixed(*sut, x, 0);
  for (std::size_t i = 0; i < 4; ++i) overlapped[i] -= g[i] / 4;
  expect_near(overlapped, {4.5, 2, 5, 9});
}

TEST(DirectedMixingTest, TwoStepsWithNesterovAreThoseOfTheSpecification) {
  const auto sut = directed_mixing(4, 1, Hops::pow2).value();
  const Vector a{1, 2, 1, 2}, c{0, 4, 8, 12};
  Vector values = x, u(4);
  const std::vector<Vector> expected{{5.625, 1.875, 5.25, 9}, {635.0 / 128, 487.0 / 64, 635.0 / 128, 487.0 / 64}};
  for (std::size_t k = 0; k < 2; ++k) {
    for (std::size_t i = 0; i < 4; ++i) {
      const double gradient = a[i] * (values[i] - c[i]);
      u[i] = u[i] / 2 + gradient;
      values[i] -= (u[i] / 2 + gradient) / 4;
    }
    values = mixed(*sut, values, static_cast<std::int64_t>(k));
    expect_near(values, expected[k]);
  }
}

TEST(DigraphMixingTest, AnIrregularGraphConservesMassAndFindsTheMean) {
  const auto sut = digraph_mixing({.out = {{1, 2}, {2}, {3}, {0}}});
  expect_sound(*sut, 4, 0, Sums::columns);
  Vector values{4, 0, 0, 0}, w(4, 1.0);
  values = mixed(*sut, values, 0);
  w = mixed(*sut, w, 0);
  expect_near(values, {4.0 / 3, 4.0 / 3, 4.0 / 3, 0});
  expect_near(w, {5.0 / 6, 5.0 / 6, 4.0 / 3, 1});
  values = mixed(*sut, values, 1);
  w = mixed(*sut, w, 1);
  expect_near(values, {4.0 / 9, 10.0 / 9, 16.0 / 9, 2.0 / 3});
  expect_near(w, {7.0 / 9, 25.0 / 36, 49.0 / 36, 7.0 / 6});
  for (int k = 2; k < 300; ++k) {
    values = mixed(*sut, values, k);
    w = mixed(*sut, w, k);
    EXPECT_NEAR(std::accumulate(values.begin(), values.end(), 0.0), 4, 1e-12);
    EXPECT_NEAR(std::accumulate(w.begin(), w.end(), 0.0), 4, 1e-12);
  }
  expect_near(w, {12.0 / 13, 8.0 / 13, 16.0 / 13, 16.0 / 13});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(values[i] / w[i], 1, 1e-12);
}

}  // namespace
}  // namespace paceline::algorithms
