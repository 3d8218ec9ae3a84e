#include "algorithms/cluster/restarts.h"

#include <gtest/gtest.h>

namespace paceline::cluster {
namespace {

using namespace std::chrono_literals;

TEST(RestartsTest, WhoHasLivedForAWhileIsStartedAtOnceHoweverOften) {
  Restarts sut;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(sut.ended(Restarts::kLived), Duration::zero());
}

TEST(RestartsTest, WhoEndsAtItsStartWaitsLongerEachTimeUntilItIsGivenUp) {
  Restarts sut;
  Duration waited{0};
  for (int i = 1; i < Restarts::kBadStarts; ++i) {
    const auto wait = sut.ended(1ms);
    ASSERT_TRUE(wait);
    EXPECT_TRUE(*wait > waited || *wait == Restarts::kLongestWait);
    waited = *wait;
  }
  EXPECT_EQ(waited, Restarts::kLongestWait);
  EXPECT_FALSE(sut.ended(1ms));
}

TEST(RestartsTest, AGoodStartForgetsTheBadOnes) {
  Restarts sut;
  for (int round = 0; round < 3; ++round) {
    for (int i = 1; i < Restarts::kBadStarts; ++i) EXPECT_TRUE(sut.ended(1ms));
    EXPECT_EQ(sut.ended(1s), Duration::zero());
  }
}

}  // namespace
}  // namespace paceline::cluster
