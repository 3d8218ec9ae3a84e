#include "algorithms/outer.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace paceline::algorithms {
namespace {

/// Mean of four workers' models after `tau` local steps from x on (a/2)(x - c)^2, a = (1,2,1,2), c = (0,4,8,12).
double local_block(double x, int tau, double lr) {
  constexpr std::array<double, 4> a{1, 2, 1, 2}, c{0, 4, 8, 12};
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    double xi = x;
    for (int k = 0; k < tau; ++k) xi -= lr * a[i] * (xi - c[i]);
    sum += xi;
  }
  return sum / 4;
}

TEST(BlockMomentumTest, ReproducesTheGoldenBlocks) {
  std::vector<double> anchor{0}, momentum{0};
  const double starts[] = {3.875, 7.38671875, 8.6317138671875};
  const double buffers[] = {-15.5, -14.046875};
  for (int block = 0; block < 3; ++block) {
    std::vector<double> mean{local_block(anchor[0], 2, 0.25)};
    block_momentum_step<double>(anchor, momentum, mean, 0.5, 0.25);
    EXPECT_NEAR(anchor[0], starts[block], 1e-12);
    EXPECT_EQ(anchor[0], mean[0]);
    if (block < 2) {
      EXPECT_NEAR(momentum[0], buffers[block], 1e-12);
    }
  }
}

TEST(BlockMomentumTest, WithoutBetaItIsPlainAveraging) {
  std::vector<float> anchor{1, -2}, momentum{0, 0}, mean{0.5f, 4};
  block_momentum_step<float>(anchor, momentum, mean, 0, 0.5);
  EXPECT_EQ(anchor, (std::vector<float>{0.5f, 4}));
  EXPECT_EQ(mean, anchor);
}

TEST(BlockMomentumTest, ALearningRateOfZeroStartsAtTheMeanAndKeepsTheMomentum) {
  std::vector<double> anchor{1}, momentum{7}, mean{3};
  block_momentum_step<double>(anchor, momentum, mean, 0.5, 0);
  EXPECT_EQ(anchor[0], 3);
  EXPECT_EQ(mean[0], 3);
  EXPECT_EQ(momentum[0], 7);
}

}  // namespace
}  // namespace paceline::algorithms
