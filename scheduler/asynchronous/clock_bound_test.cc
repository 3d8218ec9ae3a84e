#include "scheduler/asynchronous/clock_bound.h"

#include <gtest/gtest.h>

namespace paceline::scheduler {
namespace {

std::vector<Rank> ranks_of(std::initializer_list<std::int32_t> values) {
  std::vector<Rank> all;
  for (const auto v : values) all.push_back(Rank{v});
  return all;
}

TEST(ClockBoundTest, WithoutABoundEverybodyGoesOn) {
  ClockBound sut(2, std::nullopt);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(sut.on_done(Rank{0}), ranks_of({0}));
}

TEST(ClockBoundTest, ABoundOfZeroMakesRounds) {
  ClockBound sut(3, 0);
  EXPECT_TRUE(sut.on_done(Rank{2}).empty());
  EXPECT_TRUE(sut.on_done(Rank{0}).empty());
  EXPECT_EQ(sut.on_done(Rank{1}), ranks_of({0, 1, 2}));
}

TEST(ClockBoundTest, TheFastestIsAheadByTheBoundAtMost) {
  ClockBound sut(2, 2);
  EXPECT_EQ(sut.on_done(Rank{0}), ranks_of({0}));
  EXPECT_EQ(sut.on_done(Rank{0}), ranks_of({0}));
  EXPECT_TRUE(sut.on_done(Rank{0}).empty()) << "three iterations done, the other none";
  EXPECT_EQ(sut.on_done(Rank{1}), ranks_of({0, 1}));
}

TEST(ClockBoundTest, GoesOnFromWhatAnotherHasCounted) {
  ClockBound sut(2, 1);
  sut.resume(Rank{0}, 5);
  sut.resume(Rank{1}, 3);
  EXPECT_TRUE(sut.on_back(Rank{0}).empty()) << "two ahead, and not counted again";
  EXPECT_EQ(sut.on_done(Rank{1}), ranks_of({0, 1}));
}

TEST(ClockBoundTest, NobodyWaitsForOneThatIsGone) {
  ClockBound sut(2, 0);
  EXPECT_TRUE(sut.on_done(Rank{0}).empty());
  EXPECT_EQ(sut.on_gone(Rank{1}), ranks_of({0}));
  EXPECT_EQ(sut.on_done(Rank{0}), ranks_of({0}));
}

}  // namespace
}  // namespace paceline::scheduler
