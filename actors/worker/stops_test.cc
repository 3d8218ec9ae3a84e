#include "actors/worker/stops.h"

#include <gtest/gtest.h>

namespace paceline::worker {
namespace {

class StopsTest : public testing::Test {
 protected:
  static actors::Call call(std::uint64_t task) {
    actors::Call one;
    one.task = TaskId{task};
    one.owner = "driver";
    return one;
  }
  void cancel(std::uint64_t task, bool force = false, std::string owner = "driver") {
    sut.cancel({TaskId{task}, {}, {}, std::move(owner), force}, [this] { ++ended; });
  }
  Stops sut;
  int ended = 0;
};

TEST_F(StopsTest, WhatHasBegunIsTold) {
  const auto token = sut.begin(call(1));
  sut.begin(call(2));  // Coroutines: several at once.
  EXPECT_FALSE(token.stop_requested());
  cancel(1);
  EXPECT_TRUE(token.stop_requested());
  EXPECT_TRUE(sut.token_of(TaskId{1}).stop_requested());
  EXPECT_FALSE(sut.token_of(TaskId{2}).stop_requested());
  EXPECT_TRUE(sut.end(TaskId{1}));
  EXPECT_FALSE(sut.end(TaskId{2}));
  EXPECT_EQ(ended, 0);
}

TEST_F(StopsTest, ByForceOnlyWhatRuns) {
  cancel(1, true);
  sut.begin(call(2));
  sut.end(TaskId{2});
  cancel(2, true);
  EXPECT_EQ(ended, 0);
  sut.begin(call(3));
  cancel(3, true);
  EXPECT_EQ(ended, 1);
}

TEST_F(StopsTest, AWordThatOvertakesItsCallIsKept) {
  cancel(7);
  EXPECT_TRUE(sut.begin(call(7)).stop_requested());
  EXPECT_TRUE(sut.end(TaskId{7}));
  EXPECT_FALSE(sut.begin(call(7)).stop_requested()) << "once";
  cancel(8);
  for (std::uint64_t task = 100; task < 10'000; ++task) cancel(task);
  EXPECT_FALSE(sut.begin(call(8)).stop_requested()) << "few are kept";
}

TEST_F(StopsTest, OnlyByWhoAskedForIt) {
  const auto token = sut.begin(call(1));
  cancel(1, true, "somebody");
  cancel(2, true, "somebody");
  EXPECT_FALSE(token.stop_requested());
  EXPECT_FALSE(sut.begin(call(2)).stop_requested());
  EXPECT_EQ(ended, 0);
}

TEST_F(StopsTest, WhatIsUnknownNeverStops) {
  EXPECT_FALSE(sut.token_of(TaskId{9}).stop_possible());
  EXPECT_FALSE(sut.end(TaskId{9}));
}

}  // namespace
}  // namespace paceline::worker
