#include "algorithms/simulate/problems.h"

#include <gtest/gtest.h>

#include <cmath>

namespace paceline::simulate {
namespace {

TEST(LeastSquares, GivesTheGradientAndTheLossOfTheWorker) {
  const auto sut = make_quadratic({{{1, 2}, {0, 4}}, {{3, 1}, {1, 1}}});
  const auto [gradient, loss] = sut->gradient(Rank{0}, Version{9}, {2, 1});
  EXPECT_EQ(gradient, (Vector{2, -6}));
  EXPECT_EQ(loss, 0.5 * 4 + 9);
  EXPECT_EQ(sut->objective({2, 1}), (11 + 1.5) / 2);
  EXPECT_EQ(sut->workers(), 2);
  EXPECT_EQ(sut->dimensions(), 2u);
}

TEST(QuadraticNoise, IsOfTheStatedDeviationAndAddressedByWorkerAndStep) {
  const auto sut = make_quadratic({{{1}, {0}}, {{1}, {0}}}, 0.5, 7);
  const auto noise = [&](std::int32_t worker, std::int64_t step) {
    return sut->gradient(Rank{worker}, Version{step}, {0}).first[0];
  };
  EXPECT_EQ(noise(1, 3), noise(1, 3));
  EXPECT_NE(noise(1, 3), noise(0, 3));
  EXPECT_NE(noise(1, 3), noise(1, 4));
  double sum = 0, squares = 0;
  constexpr int kSteps = 20'000;
  for (int step = 0; step < kSteps; ++step) {
    sum += noise(0, step);
    squares += noise(0, step) * noise(0, step);
  }
  EXPECT_NEAR(sum / kSteps, 0, 0.02);
  EXPECT_NEAR(std::sqrt(squares / kSteps), 0.5, 0.01);
  EXPECT_EQ(sut->gradient(Rank{0}, Version{0}, {2}).second, 2) << "the loss is without noise";
}

TEST(QuadraticNoise, IsTheDocumentedOne) {
  // By another program, written from docs/jobs.md: seed 1, worker 2, step 5, two numbers.
  const Quadratic flat{{0, 0}, {0, 0}};
  const auto sut = make_quadratic({flat, flat, flat}, 1, 1);
  const Vector noise = sut->gradient(Rank{2}, Version{5}, {0, 0}).first;
  EXPECT_NEAR(noise[0], -0.4506056672790579, 1e-14);
  EXPECT_NEAR(noise[1], -1.4297130734712622, 1e-14);
}

const Softmax kSet{.workers = 3, .classes = 4, .features = 2, .samples = 30, .batch = 0, .spread = 0.3, .skew = 0};

TEST(SoftmaxSet, AtZeroEveryClassIsAsLikely) {
  const auto sut = make_softmax(kSet, 1);
  EXPECT_EQ(sut->dimensions(), 12u);
  EXPECT_NEAR(sut->gradient(Rank{0}, Version{0}, Vector(12, 0)).second, std::log(4), 1e-12);
}

TEST(SoftmaxSet, GradientIsTheSlopeOfTheLoss) {
  const auto sut = make_softmax(kSet, 1);
  Vector x(12);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = 0.1 * static_cast<double>(k) - 0.4;
  const Vector gradient = sut->gradient(Rank{1}, Version{0}, x).first;
  for (std::size_t k = 0; k < x.size(); ++k) {
    constexpr double kSmall = 1e-6;
    Vector up = x, down = x;
    up[k] += kSmall;
    down[k] -= kSmall;
    const double slope =
        (sut->gradient(Rank{1}, Version{0}, up).second - sut->gradient(Rank{1}, Version{0}, down).second) /
        (2 * kSmall);
    EXPECT_NEAR(gradient[k], slope, 1e-7);
  }
}

TEST(SoftmaxSet, DescentLearnsIt) {
  const auto sut = make_softmax(kSet, 1);
  Vector x(12, 0);
  for (int step = 0; step < 300; ++step) {
    for (int worker = 0; worker < 3; ++worker) {
      const Vector gradient = sut->gradient(Rank{worker}, Version{step}, x).first;
      for (std::size_t k = 0; k < x.size(); ++k) x[k] -= 0.3 * gradient[k];
    }
  }
  EXPECT_LT(sut->objective(x), 0.5 * std::log(4));
}

TEST(SoftmaxSet, BatchesDependOnTheStepAndAreFairSamples) {
  Softmax set = kSet;
  set.batch = 5;
  const auto sut = make_softmax(set, 1), whole = make_softmax(kSet, 1);
  const Vector x(12, 0.1);
  EXPECT_NE(sut->gradient(Rank{0}, Version{0}, x).first, sut->gradient(Rank{0}, Version{1}, x).first);
  Vector mean(12, 0);
  constexpr int kSteps = 4000;
  for (int step = 0; step < kSteps; ++step) {
    const Vector gradient = sut->gradient(Rank{0}, Version{step}, x).first;
    for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += gradient[k] / kSteps;
  }
  const Vector exact = whole->gradient(Rank{0}, Version{0}, x).first;
  for (std::size_t k = 0; k < mean.size(); ++k) EXPECT_NEAR(mean[k], exact[k], 0.03);
}

TEST(SoftmaxSet, WithFullSkewAWorkerSeesItsOwnClassOnly) {
  Softmax set = kSet;
  set.skew = 1;
  const auto sut = make_softmax(set, 1);
  Vector certain(12, 0);
  certain[3 * 1 + 2] = 50;  // The bias of class 1.
  EXPECT_NEAR(sut->gradient(Rank{1}, Version{0}, certain).second, 0, 1e-12);
  EXPECT_NEAR(sut->gradient(Rank{2}, Version{0}, certain).second, 50, 1e-9);
}

}  // namespace
}  // namespace paceline::simulate
