#include "runtime/base/event_loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

#include "runtime/base/steady_now.h"

namespace paceline {
namespace {

class EventLoopTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(pipe_), 0); }
  void TearDown() override {
    close(pipe_[0]);
    close(pipe_[1]);
  }
  void ring() { ASSERT_EQ(write(pipe_[1], "x", 1), 1); }

  EventLoop sut = *EventLoop::create();
  int pipe_[2] = {-1, -1};
};

TEST_F(EventLoopTest, ReadableDescriptorIsCalledUntilItIsDrained) {
  int calls = 0;
  ASSERT_TRUE(sut.watch(pipe_[0], [&] { ++calls; }));
  ASSERT_TRUE(sut.run_once(Duration::zero()));
  EXPECT_EQ(calls, 0);
  ring();
  ASSERT_TRUE(sut.run_once(Duration::zero()));
  ASSERT_TRUE(sut.run_once(Duration::zero()));
  EXPECT_EQ(calls, 2);
}

TEST_F(EventLoopTest, CallbackMayForgetItself) {
  int calls = 0;
  ASSERT_TRUE(sut.watch(pipe_[0], [&] {
    ++calls;
    sut.forget(pipe_[0]);
  }));
  ring();
  ASSERT_TRUE(sut.run_once(Duration::zero()));
  ASSERT_TRUE(sut.run_once(Duration::zero()));
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, WatchingTwiceReplacesTheCallback) {
  int first = 0;
  int second = 0;
  ASSERT_TRUE(sut.watch(pipe_[0], [&] { ++first; }));
  ASSERT_TRUE(sut.watch(pipe_[0], [&] { ++second; }));
  ring();
  ASSERT_TRUE(sut.run_once(Duration::zero()));
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
}

TEST_F(EventLoopTest, WhatACallbackThrowsEndsThatCallbackOnly) {
  std::string told;
  sut.on_error([&](const Error& error) { told += error.text; });
  int other[2] = {-1, -1};
  ASSERT_EQ(pipe(other), 0);
  int calls = 0;
  ASSERT_TRUE(sut.watch(pipe_[0], [] { throw std::runtime_error("boom"); }));
  ASSERT_TRUE(sut.watch(other[0], [&] { ++calls; }));
  ring();
  ASSERT_EQ(write(other[1], "x", 1), 1);
  ASSERT_TRUE(sut.run_once(Duration::zero()));
  EXPECT_EQ(told, "boom");
  EXPECT_EQ(calls, 1);
  for (const int fd : other) {
    sut.forget(fd);
    close(fd);
  }
}

TEST_F(EventLoopTest, WhoHasMoreIsCalledAgainWithoutAWaitAndAfterTheOthers) {
  std::string order;
  int other[2] = {-1, -1};
  ASSERT_EQ(pipe(other), 0);
  ASSERT_TRUE(sut.watch(pipe_[0], [&] { order += 'a'; }));
  ASSERT_TRUE(sut.watch(other[0], [&] { order += 'b'; }));
  sut.call_again(pipe_[0]);
  ASSERT_TRUE(sut.run_once(Duration(-1)));  // It is not readable: a wait would have no end.
  EXPECT_EQ(order, "a");
  sut.call_again(pipe_[0]);
  ASSERT_EQ(write(other[1], "x", 1), 1);
  ASSERT_TRUE(sut.run_once(Duration(-1)));
  EXPECT_EQ(order, "aba");
  sut.call_again(pipe_[0]);
  sut.forget(pipe_[0]);
  sut.forget(other[0]);
  ASSERT_TRUE(sut.run_once(Duration::zero()));
  EXPECT_EQ(order, "aba");
  for (const int fd : other) close(fd);
}

TEST_F(EventLoopTest, RoomIsToldOfWhileItIsWatchedFor) {
  int calls = 0;
  ASSERT_TRUE(sut.watch(pipe_[1], [&] { ++calls; }));
  ASSERT_TRUE(sut.run_once(Duration::zero()));
  EXPECT_EQ(calls, 0);
  sut.watch_room(pipe_[1], true);
  ASSERT_TRUE(sut.run_once(Duration::zero()));
  EXPECT_EQ(calls, 1);
  sut.watch_room(pipe_[1], false);
  ASSERT_TRUE(sut.run_once(Duration::zero()));
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, TheLongestTurnIsThatOfAllCallbacksOrOfWhatIsMeasured) {
  const auto compute = [] {
    for (const Instant end = steady_now() + std::chrono::milliseconds(2); steady_now() < end;) {
    }
  };
  ASSERT_TRUE(sut.watch(pipe_[0], compute));
  EXPECT_EQ(sut.take_longest_turns().wall, Duration::zero());
  ring();
  ASSERT_TRUE(sut.run_once(Duration::zero()));
  const auto turns = sut.take_longest_turns();
  EXPECT_GE(turns.wall, std::chrono::milliseconds(2));
  EXPECT_GT(turns.processor, Duration::zero());
  EXPECT_EQ(sut.take_longest_turns().wall, Duration::zero());
  sut.turn(compute);
  EXPECT_GE(sut.take_longest_turns().wall, std::chrono::milliseconds(2));
}

TEST_F(EventLoopTest, ClosedDescriptorIsAnError) {
  EXPECT_FALSE(sut.watch(9999, [] {}));
}

}  // namespace
}  // namespace paceline
