#include "actors/call_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace paceline::actors {
namespace {

constexpr ActorId kOne{1}, kTwo{2};

class CallWindowsTest : public testing::Test {
 protected:
  static std::string text(const transport::Frame& call) { return std::string(1, static_cast<char>(call[0])); }
  /// Calls of `bytes` each, one after the other; which of them leave.
  std::string offer(ActorId actor, const std::string& names, std::size_t bytes = 10) {
    std::string left;
    for (const char name : names) {
      sut.add(actor, TaskId{++tasks}, transport::Frame(bytes, static_cast<std::byte>(name)));
      left += leaving(actor);
    }
    return left;
  }
  /// Those that may leave now; over a line: in capitals. A fence is a '|'.
  std::string leaving(ActorId actor) {
    std::string all;
    while (auto next = sut.next(actor)) {
      const bool by_line = next->way == CallWindows::Way::line;
      if (next->fence) {
        next->task = fence;
        next->call = transport::Frame(1, std::byte{'|'});
        sut.add_fence(actor, *next);
      }
      all += by_line ? static_cast<char>(std::toupper(text(next->call)[0])) : text(next->call)[0];
      if (by_line) sut.on_sent(actor, *next);
    }
    return all;
  }
  std::string result(ActorId actor, std::size_t bytes = 10, CallWindows::Way way = kAgent) {
    sut.on_result(actor, TaskId{}, bytes, way);
    return leaving(actor);
  }
  std::string fence_answered(ActorId actor, CallWindows::Way way) {
    sut.on_result(actor, fence, 1, way);
    return leaving(actor);
  }

  static constexpr auto kAgent = CallWindows::Way::agent;
  static constexpr auto kLine = CallWindows::Way::line;
  const TaskId fence{1000};

  std::uint64_t tasks = 0;
  CallWindows sut{{.calls = 3, .bytes = 100, .kept_bytes_max = 50, .line_bytes = 20}};
};

TEST_F(CallWindowsTest, KeepsWhatIsBeyondTheWindowUntilThereAreResults) {
  EXPECT_EQ(offer(kOne, "abc"), "abc");
  EXPECT_EQ(offer(kOne, "de"), "");
  EXPECT_EQ(result(kOne), "d");
  EXPECT_EQ(result(kOne), "e");
  EXPECT_EQ(result(kOne), "");
}

TEST_F(CallWindowsTest, NoCallOvertakesOneThatIsKept) {
  EXPECT_EQ(offer(kOne, "a", 60), "a");
  EXPECT_EQ(offer(kOne, "b", 60), "");
  EXPECT_EQ(offer(kOne, "c", 1), "");
  EXPECT_EQ(result(kOne, 60), "bc");
}

TEST_F(CallWindowsTest, ActorsDoNotWaitForEachOther) {
  offer(kOne, "abcd");
  EXPECT_EQ(offer(kTwo, "x"), "x");
}

TEST_F(CallWindowsTest, ACallThatIsLargerThanTheWindowGoesAlone) {
  EXPECT_EQ(offer(kOne, "a", 1000), "a");
  EXPECT_EQ(offer(kOne, "b", 1), "");
  EXPECT_EQ(result(kOne, 1000), "b");
  EXPECT_EQ(offer(kOne, "c", 1000), "");
  EXPECT_EQ(result(kOne, 1), "c");
}

TEST_F(CallWindowsTest, SaysWhenTooMuchIsKept) {
  for (int i = 0; i < 3; ++i) offer(kOne, "a");
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(sut.has_room());
    offer(kOne, "b");
  }
  EXPECT_FALSE(sut.has_room());
  result(kOne);
  EXPECT_TRUE(sut.has_room());
}

TEST_F(CallWindowsTest, TheDeadNeedNoRoom) {
  for (int i = 0; i < 20; ++i) offer(kOne, "a");
  sut.forget(kOne);
  EXPECT_TRUE(sut.has_room());
  EXPECT_EQ(result(kOne), "");
  EXPECT_EQ(offer(kOne, "b"), "b");
  for (int i = 0; i < 20; ++i) offer(kTwo, "a");
  sut.forget_all();
  EXPECT_TRUE(sut.has_room());
}

TEST_F(CallWindowsTest, OverALineOnceAllThatWentThroughTheAgentHasArrived) {
  EXPECT_EQ(offer(kOne, "ab"), "ab");
  sut.set_line(kOne, true);
  EXPECT_EQ(offer(kOne, "cd"), "|") << "c would overtake a and b";
  EXPECT_EQ(result(kOne), "");
  EXPECT_FALSE(sut.on_line(kOne));
  EXPECT_EQ(fence_answered(kOne, kAgent), "CD") << "b still runs";
  EXPECT_TRUE(sut.on_line(kOne));
  EXPECT_EQ(result(kOne), "") << "of b";
  EXPECT_EQ(offer(kOne, "e"), "E");
  for (int i = 0; i < 3; ++i) result(kOne, 10, kLine);
  EXPECT_FALSE(sut.on_line(kOne));
}

TEST_F(CallWindowsTest, OverALineWithoutAFenceOnceAllResultsAreThere) {
  EXPECT_EQ(offer(kOne, "ab"), "ab");
  sut.set_line(kOne, true);
  result(kOne);
  result(kOne);
  EXPECT_EQ(offer(kOne, "c"), "C");
}

TEST_F(CallWindowsTest, ALargeCallGoesThroughTheAgentAndNoneOvertakesIt) {
  sut.set_line(kOne, true);
  EXPECT_EQ(offer(kOne, "a"), "A");
  EXPECT_EQ(offer(kOne, "b", 30), "|");
  EXPECT_EQ(offer(kOne, "c"), "");
  EXPECT_EQ(fence_answered(kOne, kLine), "b|") << "and c waits for that";
  EXPECT_EQ(fence_answered(kOne, kAgent), "C") << "a and b still run";
  EXPECT_EQ(result(kOne, 30), "");
  EXPECT_EQ(offer(kOne, "d"), "D");
}

TEST_F(CallWindowsTest, WhatMayBeSentAgainOverTheLineIsWaitedFor) {
  sut.set_line(kOne, true);
  sut.set_rule(kOne, {.restarts = 1, .call_retries = 1});
  EXPECT_EQ(offer(kOne, "a"), "A");
  EXPECT_EQ(offer(kOne, "b", 30), "");
  EXPECT_EQ(result(kOne, 10, kLine), "b");
  EXPECT_EQ(offer(kOne, "c"), "|") << "b would be sent again by the agent, before this one";
  EXPECT_EQ(fence_answered(kOne, kAgent), "C");
}

TEST_F(CallWindowsTest, ALineThatIsFullOrGoneLosesNothing) {
  sut.set_line(kOne, true);
  EXPECT_EQ(offer(kOne, "a"), "A");
  sut.add(kOne, TaskId{2}, transport::Frame(10, std::byte{'b'}));
  sut.put_back(kOne, *sut.next(kOne));
  EXPECT_EQ(offer(kOne, ""), "");
  EXPECT_EQ(result(kOne, 10, kLine), "B");
  sut.set_line(kOne, false);
  EXPECT_EQ(offer(kOne, "c"), "") << "no fence can be sent";
  EXPECT_EQ(result(kOne, 10, kLine), "c");
}

TEST_F(CallWindowsTest, AFenceForWhichThereIsNoRoomIsSentAgain) {
  sut.set_line(kOne, true);
  EXPECT_EQ(offer(kOne, "a"), "A");
  sut.add(kOne, TaskId{2}, transport::Frame(30, std::byte{'b'}));
  auto next = sut.next(kOne);
  ASSERT_TRUE(next && next->fence);
  next->task = fence;
  next->call = transport::Frame(1);
  sut.add_fence(kOne, *next);
  EXPECT_FALSE(sut.next(kOne));
  sut.put_back(kOne, *std::move(next));
  EXPECT_EQ(leaving(kOne), "|");
  EXPECT_EQ(fence_answered(kOne, kLine), "b");
}

TEST_F(CallWindowsTest, ALineWithoutCallsIsNotWaitedForWhenItIsGone) {
  EXPECT_EQ(offer(kOne, "a"), "a");
  sut.set_line(kOne, true);
  EXPECT_EQ(offer(kOne, "b"), "|");
  EXPECT_EQ(fence_answered(kOne, kAgent), "B");
  EXPECT_EQ(result(kOne, 10, kLine), "");
  sut.set_line(kOne, false);
  EXPECT_EQ(offer(kOne, "c"), "c") << "a still runs";
}

TEST_F(CallWindowsTest, ARestartKeepsWhatTheDeadHadNotTakenAndFailsWhatItHad) {
  sut.set_line(kOne, true);
  sut.set_rule(kOne, {.restarts = 1});
  EXPECT_EQ(offer(kOne, "abc"), "ABC");
  EXPECT_EQ(offer(kOne, "d"), "");
  sut.on_line_lost(kOne, 2);
  EXPECT_EQ(offer(kOne, "e"), "") << "nobody knows yet what became of the actor";
  EXPECT_EQ(sut.on_restart(kOne), std::vector{TaskId{1}});
  EXPECT_EQ(leaving(kOne), "bc");
  sut.on_result(kOne, TaskId{1}, 10, kLine);
  EXPECT_EQ(leaving(kOne), "d");
}

TEST_F(CallWindowsTest, ARestartEndsAFence) {
  EXPECT_EQ(offer(kOne, "a"), "a");
  sut.set_line(kOne, true);
  sut.set_rule(kOne, {.restarts = 1});
  EXPECT_EQ(offer(kOne, "b"), "|");
  sut.on_line_lost(kOne, 0);
  EXPECT_THAT(sut.on_restart(kOne), testing::IsEmpty());
  EXPECT_EQ(leaving(kOne), "b") << "behind a, through the agent";
  sut.set_line(kOne, true);
  EXPECT_EQ(fence_answered(kOne, kAgent), "") << "by the dead: it says nothing of the living";
  EXPECT_EQ(offer(kOne, "c"), "|");
}

TEST_F(CallWindowsTest, WhatIsSentAgainGoesBeforeWhatWasKept) {
  sut.set_line(kOne, true);
  sut.set_rule(kOne, {.restarts = 1, .call_retries = 1});
  EXPECT_EQ(offer(kOne, "abcd"), "ABC");
  sut.on_line_lost(kOne, 1);
  EXPECT_THAT(sut.on_restart(kOne), testing::IsEmpty());
  const auto again = sut.next(kOne);
  ASSERT_TRUE(again);
  EXPECT_EQ(text(again->call), "a");
  EXPECT_EQ(again->resent, 1);
  EXPECT_EQ(leaving(kOne), "bc");
  EXPECT_EQ(result(kOne), "d");
}

TEST_F(CallWindowsTest, ALateResultOfTheDeadTakesItsCallBack) {
  sut.set_line(kOne, true);
  sut.set_rule(kOne, {.restarts = 1, .call_retries = 1});
  EXPECT_EQ(offer(kOne, "ab"), "AB");
  sut.on_line_lost(kOne, 0);
  sut.on_result(kOne, TaskId{1}, 10, kLine);
  EXPECT_THAT(sut.on_restart(kOne), testing::IsEmpty());
  sut.on_result(kOne, TaskId{2}, 10, kLine);
  EXPECT_EQ(offer(kOne, "cdef"), "cde") << "the window is as empty as it was";
}

TEST_F(CallWindowsTest, ACallThatHasBeenSentAgainOftenEnoughFails) {
  sut.set_line(kOne, true);
  sut.set_rule(kOne, {.restarts = -1, .call_retries = 1});
  EXPECT_EQ(offer(kOne, "a"), "A");
  sut.on_line_lost(kOne, 0);
  EXPECT_THAT(sut.on_restart(kOne), testing::IsEmpty());
  sut.set_line(kOne, true);
  sut.set_rule(kOne, {.restarts = -1, .call_retries = 1});
  const auto again = sut.next(kOne);
  ASSERT_TRUE(again);
  sut.on_sent(kOne, *again);
  sut.on_line_lost(kOne, 0);
  EXPECT_EQ(sut.on_restart(kOne), std::vector{TaskId{1}});
}

TEST_F(CallWindowsTest, WhatIsDroppedLeavesNoMore) {
  EXPECT_EQ(offer(kOne, "abcdefgh"), "abc");
  EXPECT_FALSE(sut.has_room());
  EXPECT_FALSE(sut.drop(kOne, TaskId{2})) << "it has left";
  EXPECT_FALSE(sut.drop(kTwo, TaskId{5}));
  EXPECT_TRUE(sut.drop(kOne, TaskId{5}));
  EXPECT_FALSE(sut.drop(kOne, TaskId{5}));
  EXPECT_TRUE(sut.has_room());
  EXPECT_EQ(result(kOne), "d");
  EXPECT_EQ(result(kOne), "f");
}

/// Whatever the sizes, the order of results, and lines that come and go: all calls leave, in order, within the bounds,
/// and arrive in that order, though each way takes as long as it likes and many of them never have a result.
TEST_F(CallWindowsTest, EveryCallArrivesInOrder) {
  constexpr int kCalls = 100;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    CallWindows windows({.calls = 6, .bytes = 120, .kept_bytes_max = 1, .line_bytes = 40});
    struct OnItsWay {
      std::size_t bytes;
      CallWindows::Way way;
      TaskId task;
      bool fence;
    };
    std::deque<OnItsWay> ways[2], running;
    int offered = 0, left = 0, arrived = 0;
    std::uint64_t fences = 1000;
    const auto send = [&] {
      while (auto leaving = windows.next(kOne)) {
        if (leaving->fence) {
          leaving->task = TaskId{++fences};
          leaving->call = transport::Frame(1);
          windows.add_fence(kOne, *leaving);
        }
        if (leaving->way == CallWindows::Way::line && random() % 4 == 0) {
          windows.put_back(kOne, *std::move(leaving));
          break;
        }
        if (!leaving->fence) {
          ASSERT_EQ(leaving->task.value, static_cast<std::uint64_t>(left++));
        }
        ways[leaving->way == CallWindows::Way::line ? 1 : 0].push_back(
            {leaving->call.size(), leaving->way, leaving->task, leaving->fence});
        ASSERT_LE(ways[0].size() + ways[1].size() + running.size(), 6U + 1U);
      }
    };
    while (offered < kCalls || left < kCalls || !ways[0].empty() || !ways[1].empty() || !running.empty()) {
      if (random() % 10 == 0) windows.set_line(kOne, random() % 2 == 0);
      auto& way = ways[random() % 2];
      if (offered < kCalls && random() % 2 == 0) {
        windows.add(kOne, TaskId{static_cast<std::uint64_t>(offered++)}, transport::Frame(1 + random() % 70));
      } else if (!way.empty() && random() % 2 == 0) {
        const auto one = way.front();
        way.pop_front();
        if (one.fence) {
          windows.on_result(kOne, one.task, one.bytes, one.way);
        } else {
          ASSERT_EQ(one.task.value, static_cast<std::uint64_t>(arrived++)) << "one has overtaken another";
          running.push_back(one);
        }
      } else if (!running.empty() && (random() % 4 == 0 || offered == kCalls)) {
        std::swap(running.front(), running[random() % running.size()]);
        windows.on_result(kOne, running.front().task, running.front().bytes, running.front().way);
        running.pop_front();
      }
      send();
    }
    ASSERT_EQ(arrived, kCalls);
    ASSERT_TRUE(windows.has_room());
  }
}

}  // namespace
}  // namespace paceline::actors
