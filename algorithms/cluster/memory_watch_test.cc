#include "algorithms/cluster/memory_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::cluster {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGiB = 1 << 30;
const WorkerId kFirst{1};
const WorkerId kSecond{2};

class MemoryWatchTest : public testing::Test {
 protected:
  static MemoryWatch watch(std::uint64_t limit) {
    MemoryWatch::Options options;
    options.node = NodeId{3};
    options.limit = limit;
    options.reserve = kGiB;
    return MemoryWatch(options);
  }
  std::optional<WorkerId> victim(MemoryWatch& sut, const MemoryWatch::Look& look) {
    const auto found = sut.on_look(look, now);
    why = found ? found->why : "";
    return found ? std::optional(found->worker) : std::nullopt;
  }

  Instant now{1h};
  std::string why;
};

TEST_F(MemoryWatchTest, WhileThereIsEnoughNobodyEndsAndLooksAreRare) {
  auto sut = watch(0);
  EXPECT_EQ(victim(sut, {20 * kGiB, {{kFirst, 2 * kGiB}}}), std::nullopt);
  EXPECT_EQ(sut.next_look(), now + 2s);
  EXPECT_EQ(victim(sut, {2 * kGiB, {{kFirst, 20 * kGiB}}}), std::nullopt);
  EXPECT_EQ(sut.next_look(), now + 250ms) << "1 GiB could be filled in that time";
  EXPECT_EQ(victim(sut, {kGiB, {{kFirst, 21 * kGiB}}}), std::nullopt);
  EXPECT_EQ(sut.next_look(), now + 20ms);
  EXPECT_EQ(victim(sut, {20 * kGiB, {}}), std::nullopt);
}

TEST_F(MemoryWatchTest, BeyondTheLimitTheLargestEndsAndNobodyElseUntilItHas) {
  auto sut = watch(2 * kGiB);
  EXPECT_EQ(victim(sut, {20 * kGiB, {{kFirst, kGiB}, {kSecond, kGiB / 2}}}), std::nullopt);
  EXPECT_EQ(sut.next_look(), now + 125ms) << "of the limit 512 MiB are left";
  const MemoryWatch::Look too_much{20 * kGiB, {{kFirst, kGiB / 2}, {kSecond, 2 * kGiB}}};
  EXPECT_EQ(victim(sut, too_much), kSecond);
  EXPECT_EQ(
      why,
      "killed for its memory: it had 2 GiB when the workers of node 3 had 2.5 GiB of the 2 GiB that they may have "
      "(paceline up --memory)");
  EXPECT_EQ(sut.used(), 2 * kGiB + kGiB / 2);
  EXPECT_EQ(sut.used_by(kFirst), kGiB / 2);
  EXPECT_EQ(victim(sut, too_much), std::nullopt) << "its memory is being given back";
  sut.on_gone(kFirst);
  EXPECT_EQ(victim(sut, too_much), std::nullopt);
  sut.on_gone(kSecond);
  EXPECT_EQ(victim(sut, too_much), kSecond) << "another of its number cannot be, but who has too much ends";
}

TEST_F(MemoryWatchTest, WorkersAreLookedAtSeldomWhileTheMachineHasAsMuchAsBefore) {
  auto sut = watch(0);
  EXPECT_TRUE(sut.is_at_all(now)) << "nothing is known yet";
  EXPECT_EQ(victim(sut, {20 * kGiB, {{kFirst, kGiB}}, true, 12ms}), std::nullopt);
  EXPECT_FALSE(sut.is_at_all(now + 119s)) << "12 ms are a hundredth of a percent of two minutes";
  EXPECT_TRUE(sut.is_at_all(now + 120s));
  EXPECT_EQ(sut.at_all_below(), 2 * kGiB);
  now = sut.next_look();
  EXPECT_EQ(victim(sut, {20 * kGiB, {}, false}), std::nullopt);
  EXPECT_EQ(sut.used(), kGiB) << "as at the last look at the workers";
  EXPECT_EQ(sut.next_look(), now + 2s);
  auto limited = watch(4 * kGiB);
  EXPECT_EQ(victim(limited, {20 * kGiB, {{kFirst, kGiB}}, true, 12ms}), std::nullopt);
  EXPECT_EQ(limited.at_all_below(), 20 * kGiB - 3 * kGiB / 2) << "half of what is left of the limit";
  EXPECT_EQ(victim(limited, {20 * kGiB, {{kFirst, 5 * kGiB}}, true, 12ms}), kFirst);
  EXPECT_TRUE(limited.is_at_all(now + 20ms)) << "whoever is to end is waited for";
}

TEST_F(MemoryWatchTest, WhoWasToEndAndHadEndedAlreadyIsWaitedForNoLonger) {
  auto sut = watch(2 * kGiB);
  sut.on_gone(kFirst);
  EXPECT_EQ(victim(sut, {20 * kGiB, {{kFirst, 3 * kGiB}}}), kFirst) << "an old look";
  EXPECT_EQ(victim(sut, {20 * kGiB, {{kSecond, 3 * kGiB}}}), kSecond);
}

TEST_F(MemoryWatchTest, WhatEndedHasNothingAnyMore) {
  auto sut = watch(0);
  (void)victim(sut, {20 * kGiB, {{kFirst, kGiB}, {kSecond, 2 * kGiB}}});
  sut.on_gone(kSecond);
  EXPECT_EQ(sut.used(), kGiB);
  EXPECT_EQ(sut.used_by(kSecond), 0u);
}

TEST_F(MemoryWatchTest, WhoHasWhatItAskedForIsSparedWhileAnotherHasMore) {
  auto sut = watch(2 * kGiB);
  EXPECT_EQ(victim(sut, {20 * kGiB, {{kFirst, kGiB + 200 * kMiB, kGiB}, {kSecond, 900 * kMiB, 0}}}), kSecond);
  auto other = watch(2 * kGiB);
  EXPECT_EQ(victim(other, {20 * kGiB, {{kFirst, kGiB, kGiB}, {kSecond, kGiB + kMiB, 2 * kGiB}}}), kSecond)
      << "none has more than it asked for: the largest";
}

TEST_F(MemoryWatchTest, BeforeTheMachineHasNoneLeftTheLargestEndsSoonest) {
  auto large = watch(0), small = watch(0);
  const auto left = kGiB - 100 * kMiB;
  std::optional<Duration> large_ended;
  for (Duration after{}; !large_ended && after <= 300ms; after += 10ms, now += 10ms) {
    if (victim(large, {left, {{kFirst, 20 * kGiB}}})) large_ended = after;
    EXPECT_EQ(victim(small, {left, {{kSecond, 600 * kMiB}}}), std::nullopt) << "after it";
  }
  ASSERT_TRUE(large_ended);
  EXPECT_LE(*large_ended, 30ms);
  now += 200ms;
  EXPECT_EQ(victim(small, {left, {{kSecond, 600 * kMiB}}}), kSecond) << "it did not help";
  EXPECT_THAT(why, HasSubstr("it had 600 MiB when the machine had 924 MiB left, less than the 1 GiB"));
}

TEST_F(MemoryWatchTest, WhoHasLittleDoesNotEndForOthers) {
  auto sut = watch(0);
  for (int i = 0; i < 100; ++i, now += 100ms)
    EXPECT_EQ(victim(sut, {100 * kMiB, {{kFirst, 400 * kMiB}, {kSecond, 3 * kMiB}}}), std::nullopt);
  EXPECT_EQ(victim(sut, {100 * kMiB, {}}), std::nullopt);
}

}  // namespace
}  // namespace paceline::cluster
