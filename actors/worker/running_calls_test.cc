#include "actors/worker/running_calls.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

namespace paceline::worker {
namespace {

class RunningCallsTest : public testing::Test {
 protected:
  static actors::Call call(std::uint64_t task) {
    actors::Call one;
    one.task = TaskId{task};
    one.owner = "driver";
    return one;
  }
  void cancel(std::uint64_t task, bool force = false, std::string owner = "driver") {
    const auto kind = force ? actors::Signal::Kind::end : actors::Signal::Kind::cancel;
    sut.on_signal({TaskId{task}, {}, {}, std::move(owner), kind}, [this] { ++ended; });
  }
  RunningCalls sut;
  int ended = 0;
};

TEST_F(RunningCallsTest, WhatHasBegunIsTold) {
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

TEST_F(RunningCallsTest, ByForceOnlyWhatRuns) {
  cancel(1, true);
  sut.begin(call(2));
  sut.end(TaskId{2});
  cancel(2, true);
  EXPECT_EQ(ended, 0);
  sut.begin(call(3));
  cancel(3, true);
  EXPECT_EQ(ended, 1);
}

TEST_F(RunningCallsTest, AWordThatOvertakesItsCallIsKept) {
  cancel(7);
  EXPECT_TRUE(sut.begin(call(7)).stop_requested());
  EXPECT_TRUE(sut.end(TaskId{7}));
  EXPECT_FALSE(sut.begin(call(7)).stop_requested()) << "once";
  cancel(8);
  for (std::uint64_t task = 100; task < 10'000; ++task) cancel(task);
  EXPECT_FALSE(sut.begin(call(8)).stop_requested()) << "few are kept";
}

TEST_F(RunningCallsTest, OnlyByWhoAskedForIt) {
  const auto token = sut.begin(call(1));
  cancel(1, true, "somebody");
  cancel(2, true, "somebody");
  EXPECT_FALSE(token.stop_requested());
  EXPECT_FALSE(sut.begin(call(2)).stop_requested());
  EXPECT_EQ(ended, 0);
}

TEST_F(RunningCallsTest, WhatIsUnknownNeverStops) {
  EXPECT_FALSE(sut.token_of(TaskId{9}).stop_possible());
  EXPECT_FALSE(sut.end(TaskId{9}));
}

class StreamOfACall : public RunningCallsTest {
 protected:
  StreamOfACall() {
    auto one = call(1);
    one.ahead = 2;
    sut.begin(one);
  }
  void take(std::uint64_t taken, std::string owner = "driver") {
    sut.on_signal({TaskId{1}, {}, {}, std::move(owner), actors::Signal::Kind::taken, taken}, [this] { ++ended; });
  }
  /// A value that has to wait, by another thread; its number, once it may leave.
  std::future<std::uint64_t> waits() {
    auto given = std::async(std::launch::async, [this] { return sut.give(TaskId{1}, 1); });
    EXPECT_EQ(given.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
    return given;
  }
  /// Whether a value can be given now.
  bool gives(std::size_t bytes = 1) {
    auto given = std::async(std::launch::async, [&] { return sut.give(TaskId{1}, bytes); });
    const bool done = given.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready;
    if (!done) cancel(1);
    return given.get() != 0 && done;
  }
};

TEST_F(StreamOfACall, IsAtMostSoFarAhead) {
  EXPECT_EQ(sut.give(TaskId{1}, 1), 1u);
  EXPECT_EQ(sut.give(TaskId{1}, 1), 2u);
  take(1);
  EXPECT_EQ(sut.give(TaskId{1}, 1), 3u);
  take(1);
  take(5, "somebody");
  EXPECT_FALSE(gives()) << "until more are taken";
  EXPECT_EQ(ended, 0);
}

TEST_F(StreamOfACall, GoesOnWhenItsValuesAreTaken) {
  sut.give(TaskId{1}, 1);
  sut.give(TaskId{1}, 1);
  auto third = waits();
  take(1);
  EXPECT_EQ(third.get(), 3u);
}

TEST_F(StreamOfACall, OneLargeValueIsOnItsWayAtATime) {
  EXPECT_EQ(sut.give(TaskId{1}, actors::kStreamBytesMax), 1u);
  auto second = waits();
  take(1);
  EXPECT_EQ(second.get(), 2u);
}

TEST_F(StreamOfACall, WhatIsCancelledGivesNothingMore) {
  sut.give(TaskId{1}, 1);
  sut.give(TaskId{1}, 1);
  auto third = waits();
  cancel(1);
  EXPECT_EQ(third.get(), 0u);
  EXPECT_EQ(sut.give(TaskId{7}, 1), 0u) << "nobody has begun it";
}

}  // namespace
}  // namespace paceline::worker
