#include "scheduler/shell/training_clock.h"

#include <gtest/gtest.h>

namespace paceline::scheduler {
namespace {

using std::chrono::seconds;

Instant at(int second) { return Instant{} + seconds(second); }

TEST(TrainingClock, EvaluationsDoNotCount) {
  TrainingClock clock(at(10));
  EXPECT_EQ(clock.at(at(13)), seconds(3));
  clock.stand_still(at(14));
  EXPECT_EQ(clock.at(at(20)), seconds(4));
  clock.go_on(at(24));
  EXPECT_EQ(clock.at(at(26)), seconds(6));
}

TEST(TrainingClock, StandsStillOnceAndGoesOnOnce) {
  TrainingClock clock(at(0));
  clock.stand_still(at(1));
  clock.stand_still(at(3));
  clock.go_on(at(5));
  clock.go_on(at(9));
  EXPECT_EQ(clock.at(at(10)), seconds(6));
}

TEST(TrainingClock, StartsAgainAtZero) {
  TrainingClock clock(at(0));
  clock.stand_still(at(1));
  clock.go_on(at(2));
  clock.start(at(5));
  EXPECT_EQ(clock.at(at(7)), seconds(2));
}

TEST(TrainingClock, ThatStandsStillStartsAtZeroAndStandsStill) {
  TrainingClock clock(at(0));
  clock.stand_still(at(1));
  clock.start(at(5));
  EXPECT_EQ(clock.at(at(7)), seconds(0));
  clock.go_on(at(8));
  EXPECT_EQ(clock.at(at(10)), seconds(2));
}

}  // namespace
}  // namespace paceline::scheduler
