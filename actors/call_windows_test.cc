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
  /// Those that may leave now; over a line: in capitals.
  std::string leaving(ActorId actor) {
    std::string all;
    while (const auto next = sut.next(actor)) {
      const bool by_line = next->way == CallWindows::Way::line;
      all += by_line ? static_cast<char>(std::toupper(text(next->call)[0])) : text(next->call)[0];
      if (by_line) sut.on_sent(actor, *next);
    }
    return all;
  }
  std::string result(ActorId actor, std::size_t bytes = 10) {
    sut.on_result(actor, TaskId{}, bytes);
    return leaving(actor);
  }

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

TEST_F(CallWindowsTest, OverALineOnlyOnceNothingIsUnderWayThroughTheAgent) {
  EXPECT_EQ(offer(kOne, "ab"), "ab");
  sut.set_line(kOne, true);
  EXPECT_EQ(offer(kOne, "cd"), "") << "c would overtake a and b";
  EXPECT_EQ(result(kOne), "");
  EXPECT_FALSE(sut.on_line(kOne));
  EXPECT_EQ(result(kOne), "CD");
  EXPECT_TRUE(sut.on_line(kOne));
}

TEST_F(CallWindowsTest, ALargeCallGoesThroughTheAgentAndNoneOvertakesIt) {
  sut.set_line(kOne, true);
  EXPECT_EQ(offer(kOne, "a"), "A");
  EXPECT_EQ(offer(kOne, "b", 30), "");
  EXPECT_EQ(offer(kOne, "c"), "");
  EXPECT_EQ(result(kOne), "b");
  EXPECT_EQ(result(kOne, 30), "C");
}

TEST_F(CallWindowsTest, ALineThatIsFullOrGoneLosesNothing) {
  sut.set_line(kOne, true);
  EXPECT_EQ(offer(kOne, "a"), "A");
  sut.add(kOne, TaskId{2}, transport::Frame(10, std::byte{'b'}));
  sut.put_back(kOne, *sut.next(kOne));
  EXPECT_EQ(offer(kOne, ""), "");
  EXPECT_EQ(result(kOne), "B");
  sut.set_line(kOne, false);
  EXPECT_EQ(offer(kOne, "c"), "");
  EXPECT_EQ(result(kOne), "c");
}

TEST_F(CallWindowsTest, ARestartKeepsWhatTheDeadHadNotTakenAndFailsWhatItHad) {
  sut.set_line(kOne, true);
  sut.set_rule(kOne, {.restarts = 1});
  EXPECT_EQ(offer(kOne, "abc"), "ABC");
  EXPECT_EQ(offer(kOne, "d"), "");
  sut.on_line_lost(kOne, 2);
  EXPECT_EQ(offer(kOne, "e"), "") << "nobody knows yet what became of the actor";
  EXPECT_EQ(sut.on_restart(kOne), std::vector{TaskId{1}});
  EXPECT_EQ(leaving(kOne), "") << "a has no result yet, and they go another way";
  sut.on_result(kOne, TaskId{1}, 10);
  EXPECT_EQ(leaving(kOne), "bcd");
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
  sut.on_result(kOne, TaskId{1}, 10);
  EXPECT_THAT(sut.on_restart(kOne), testing::IsEmpty());
  sut.on_result(kOne, TaskId{2}, 10);
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
/// and those under way all went the same way.
TEST_F(CallWindowsTest, EveryCallLeavesInOrder) {
  constexpr int kCalls = 100;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    CallWindows windows({.calls = 4, .bytes = 50, .kept_bytes_max = 1, .line_bytes = 40});
    std::deque<std::pair<std::size_t, CallWindows::Way>> under_way;
    int offered = 0, left = 0;
    const auto send = [&] {
      while (auto leaving = windows.next(kOne)) {
        if (leaving->way == CallWindows::Way::line && random() % 4 == 0) {
          windows.put_back(kOne, *std::move(leaving));
          break;
        }
        ASSERT_EQ(static_cast<int>(leaving->call[0]), left++);
        under_way.emplace_back(leaving->call.size(), leaving->way);
        std::size_t bytes = 0;
        for (const auto& [size, way] : under_way) {
          bytes += size;
          ASSERT_EQ(way, leaving->way);
        }
        ASSERT_TRUE(under_way.size() == 1 || (under_way.size() <= 4 && bytes <= 50));
      }
    };
    while (offered < kCalls || left < kCalls || !under_way.empty()) {
      if (random() % 10 == 0) windows.set_line(kOne, random() % 2 == 0);
      if (offered < kCalls && random() % 2 == 0) {
        windows.add(kOne, TaskId{}, transport::Frame(1 + random() % 70, static_cast<std::byte>(offered++)));
      } else if (!under_way.empty()) {
        windows.on_result(kOne, TaskId{}, under_way.front().first);
        under_way.pop_front();
      }
      send();
    }
    ASSERT_EQ(left, kCalls);
    ASSERT_TRUE(windows.has_room());
  }
}

}  // namespace
}  // namespace paceline::actors
