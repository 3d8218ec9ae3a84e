#include "actors/call_windows.h"

#include <gtest/gtest.h>

#include <deque>
#include <numeric>
#include <random>
#include <string>

namespace paceline::actors {
namespace {

constexpr ActorId kOne{1}, kTwo{2};

class CallWindowsTest : public testing::Test {
 protected:
  static std::string text(const transport::Frame& call) { return std::string(1, static_cast<char>(call[0])); }
  /// Calls of `bytes` each, one after the other; which of them leave.
  std::string offer(ActorId actor, const std::string& names, std::size_t bytes = 10) {
    std::string left;
    for (const char name : names)
      if (const auto leaves = sut.offer(actor, transport::Frame(bytes, static_cast<std::byte>(name))))
        left += text(*leaves);
    return left;
  }
  std::string result(ActorId actor, std::size_t bytes = 10) {
    std::string all;
    for (const auto& released : sut.on_result(actor, bytes)) all += text(released);
    return all;
  }

  CallWindows sut{{.calls = 3, .bytes = 100, .kept_bytes_max = 50}};
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

/// Whatever the sizes and the order of results: all calls leave, in order, within the bounds.
TEST_F(CallWindowsTest, EveryCallLeavesInOrder) {
  constexpr int kCalls = 100;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    CallWindows windows({.calls = 4, .bytes = 50, .kept_bytes_max = 1});
    std::deque<std::size_t> under_way;
    int offered = 0, left = 0;
    const auto leaves = [&](const transport::Frame& call) {
      ASSERT_EQ(static_cast<int>(call[0]), left++);
      under_way.push_back(call.size());
      const auto bytes = std::accumulate(under_way.begin(), under_way.end(), std::size_t{0});
      ASSERT_TRUE(under_way.size() == 1 || (under_way.size() <= 4 && bytes <= 50));
    };
    while (offered < kCalls || !under_way.empty()) {
      if (offered < kCalls && random() % 2 == 0) {
        transport::Frame call(1 + random() % 70, static_cast<std::byte>(offered++));
        if (const auto now = windows.offer(kOne, std::move(call))) leaves(*now);
      } else if (!under_way.empty()) {
        const std::size_t bytes = under_way.front();
        under_way.pop_front();
        for (const auto& released : windows.on_result(kOne, bytes)) leaves(released);
      }
    }
    ASSERT_EQ(left, kCalls);
    ASSERT_TRUE(windows.has_room());
  }
}

}  // namespace
}  // namespace paceline::actors
