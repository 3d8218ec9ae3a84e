#include "runtime/base/splitmix.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace paceline {
namespace {

TEST(SplitmixTest, IsThePublishedGenerator) {
  EXPECT_EQ(splitmix(0), 0xe220a8397b1dcdaf);
  EXPECT_EQ(splitmix(0x9e3779b97f4a7c15), 0x6e789e6aa1b965f4);  // The second number from state 0.
}

TEST(SplitmixTest, DrawsDependOnSeedStepAndItem) {
  EXPECT_EQ(draw_bits(1, 2, 3), splitmix(splitmix(splitmix(1) ^ 2) ^ 3));
  EXPECT_NE(draw_bits(1, 2, 3), draw_bits(1, 3, 2));
  EXPECT_NE(draw_bits(1, 2, 3), draw_bits(2, 2, 3));
}

TEST(SplitmixTest, UniformDrawsFillTheUnitInterval) {
  double sum = 0, least = 1, most = 0;
  for (int step = 0; step < 10'000; ++step) {
    const double draw = draw_uniform(7, step, 0);
    EXPECT_EQ(draw, static_cast<double>(draw_bits(7, step, 0) >> 11) / 9007199254740992.0);
    sum += draw;
    least = std::min(least, draw);
    most = std::max(most, draw);
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.01);
  EXPECT_GE(least, 0);
  EXPECT_LT(least, 0.001);
  EXPECT_LT(most, 1);
  EXPECT_GT(most, 0.999);
}

}  // namespace
}  // namespace paceline
