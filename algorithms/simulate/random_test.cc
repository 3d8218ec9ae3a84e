#include "algorithms/simulate/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace paceline::simulate {
namespace {

TEST(Random, TheAddressAloneSaysWhichNumbersCome) {
  Random one(7, Use::compute, {2, 5}), two(7, Use::compute, {2, 5});
  for (int k = 0; k < 10; ++k) EXPECT_EQ(one.next(), two.next());
  std::set<std::uint64_t> firsts = {
      Random(7, Use::compute, {2, 5}).next(),    Random(8, Use::compute, {2, 5}).next(),
      Random(7, Use::stragglers, {2, 5}).next(), Random(7, Use::compute, {5, 2}).next(),
      Random(7, Use::compute, {2}).next(),       Random(7, Use::compute, {2, 5, 0}).next()};
  EXPECT_EQ(firsts.size(), 6u);
}

TEST(Random, IsSplitmix64) {
  // By another program, written from docs/jobs.md.
  Random numbers(1, Use::gradient_noise, {2, 5}), normals(1, Use::gradient_noise, {2, 5});
  EXPECT_EQ(numbers.next(), 0x533b08169864b937u);
  EXPECT_EQ(numbers.next(), 0xb38f6c99c240c004u);
  EXPECT_NEAR(normals.normal(), -0.4506056672790579, 1e-14);
  EXPECT_NEAR(normals.normal(), -1.4297130734712622, 1e-14);
}

TEST(Random, UniformNumbersFillTheIntervalEvenly) {
  Random sut(3, Use::samples, {0});
  double sum = 0, least = 2, most = -1;
  constexpr int kDraws = 100'000;
  for (int k = 0; k < kDraws; ++k) {
    const double u = sut.uniform();
    sum += u;
    least = std::min(least, u);
    most = std::max(most, u);
  }
  EXPECT_GT(least, 0);
  EXPECT_LE(most, 1);
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);
}

TEST(Random, BelowGivesEveryNumberAndNoOther) {
  Random sut(3, Use::samples, {1});
  int counts[5] = {};
  for (int k = 0; k < 10'000; ++k) ++counts[sut.below(5)];
  for (int count : counts) EXPECT_NEAR(count, 2000, 200);
}

TEST(Random, NormalNumbersHaveMeanZeroAndVarianceOne) {
  Random sut(3, Use::samples, {2});
  double sum = 0, squares = 0;
  int within_one = 0;
  constexpr int kDraws = 100'000;
  for (int k = 0; k < kDraws; ++k) {
    const double z = sut.normal();
    sum += z;
    squares += z * z;
    within_one += std::abs(z) < 1;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_NEAR(static_cast<double>(within_one) / kDraws, 0.6827, 0.01);
}

}  // namespace
}  // namespace paceline::simulate
