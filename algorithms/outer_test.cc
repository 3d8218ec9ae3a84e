#include "algorithms/outer.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace paceline::algorithms {
namespace {

using Kind = Outer::Kind;

constexpr double kLr = 0.25;

/// Mean of four workers' models after `tau` local steps from x on (a/2)(x - c)^2, a = (1,2,1,2), c = (0,4,8,12).
double local_block(double x, int tau) {
  constexpr std::array<double, 4> a{1, 2, 1, 2}, c{0, 4, 8, 12};
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    double xi = x;
    for (int k = 0; k < tau; ++k) xi -= kLr * a[i] * (xi - c[i]);
    sum += xi;
  }
  return sum / 4;
}

struct Blocks {
  std::vector<double> ends, starts, buffers;
};

/// Blocks of two steps from 0 on.
Blocks blocks(const Outer& outer, int count) {
  Blocks all;
  std::vector<double> anchor{0}, momentum{0}, start{0};
  for (int i = 0; i < count; ++i) {
    std::vector<double> mean{local_block(start[0], 2)};
    outer_step<double>(outer, anchor, momentum, mean, kLr);
    start = mean;
    all.ends.push_back(anchor[0]);
    all.starts.push_back(start[0]);
    all.buffers.push_back(momentum[0]);
  }
  return all;
}

void expect_near(const std::vector<double>& given, const std::vector<double>& wanted, double tolerance = 1e-12) {
  ASSERT_GE(given.size(), wanted.size());
  for (std::size_t k = 0; k < wanted.size(); ++k) EXPECT_NEAR(given[k], wanted[k], tolerance) << "block " << k;
}

TEST(OuterTest, BlockMomentumReproducesTheGoldenBlocks) {
  const auto all = blocks({.kind = Kind::block_momentum, .momentum = 0.5}, 3);
  expect_near(all.ends, {3.875, 7.38671875, 8.6317138671875});
  expect_near(all.buffers, {-15.5, -14.046875});
  expect_near(all.starts, all.ends, 0);
}

TEST(OuterTest, ClassicBmufAndSlowMoAreBlockMomentumAtAConstantLearningRate) {
  const auto golden = blocks({.kind = Kind::block_momentum, .momentum = 0.5}, 6);
  const auto bmuf = blocks({.kind = Kind::bmuf, .momentum = 0.5, .rate = 1}, 6);
  expect_near(bmuf.ends, golden.ends);
  expect_near(bmuf.buffers, {31.0 / 8, 899.0 / 256, 10199.0 / 8192});
  expect_near(blocks({.kind = Kind::slowmo, .momentum = 0.5, .rate = 1}, 6).ends, golden.ends);
}

TEST(OuterTest, NesterovBmufStartsWhereMomentumWouldCarryIt) {
  const auto all = blocks({.kind = Kind::bmuf, .momentum = 0.5, .rate = 1, .nesterov = true}, 3);
  expect_near(all.ends, {3.875, 6.236328125, 6.888153}, 1e-6);
  expect_near(all.starts, {5.8125, 7.4169921875});
}

TEST(OuterTest, DiLoCoReproducesTheGoldenBlocks) {
  expect_near(blocks({.kind = Kind::diloco, .momentum = 0.9, .rate = 0.7}, 3).ends,
              {5.15375, 8.434773046875, 9.367183557983});
}

TEST(OuterTest, WithoutMomentumTheMeanIsTaken) {
  const auto plain = blocks({}, 4);
  expect_near(plain.ends, {3.875, 5.44921875});
  for (const Kind kind : {Kind::block_momentum, Kind::bmuf, Kind::slowmo, Kind::diloco})
    expect_near(blocks({.kind = kind, .momentum = 0, .rate = 1}, 4).ends, plain.ends);
}

TEST(OuterTest, OneStepABlockWithoutLocalMomentumIsSerialMomentumSgd) {
  std::vector<double> anchor{1}, momentum{0};
  double x = 1, buffer = 0;
  for (int i = 0; i < 5; ++i) {
    const double gradient = 3 * (x - 2);
    std::vector<double> mean{anchor[0] - 0.1 * 3 * (anchor[0] - 2)};
    outer_step<double>({.kind = Kind::slowmo, .momentum = 0.9, .rate = 1}, anchor, momentum, mean, 0.1);
    buffer = 0.9 * buffer + gradient;
    x -= 0.1 * buffer;
    EXPECT_NEAR(anchor[0], x, 1e-12);
  }
}

TEST(OuterTest, ALearningRateOfZeroLeavesTheMomentum) {
  std::vector<double> anchor{1}, momentum{5}, mean{3};
  outer_step<double>({.kind = Kind::slowmo, .momentum = 0.9}, anchor, momentum, mean, 0);
  EXPECT_EQ(anchor[0], 3);
  EXPECT_EQ(mean[0], 3);
  EXPECT_EQ(momentum[0], 5);
}

TEST(OuterTest, FloatsAreStepped) {
  std::vector<float> anchor{0}, momentum{0}, mean{3.875F};
  outer_step<float>({.kind = Kind::block_momentum, .momentum = 0.5}, anchor, momentum, mean, kLr);
  EXPECT_FLOAT_EQ(anchor[0], 3.875F);
  EXPECT_FLOAT_EQ(momentum[0], -15.5F);
}

}  // namespace
}  // namespace paceline::algorithms
