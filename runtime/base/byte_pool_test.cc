#include "runtime/base/byte_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace paceline {
namespace {

TEST(BytePoolTest, WhatIsGivenBackIsUsedAgainAsItIs) {
  BytePool sut(2);
  auto bytes = sut.get(1000);
  EXPECT_EQ(bytes->size(), 1000u);
  std::fill(bytes->begin(), bytes->end(), std::byte{7});
  const std::byte* const memory = bytes->data();
  bytes.reset();
  EXPECT_EQ(sut.spares(), 1u);
  bytes = sut.get(900);
  EXPECT_EQ(bytes->data(), memory);
  EXPECT_EQ(bytes->size(), 900u);
  EXPECT_EQ((*bytes).end()[-1], std::byte{7});
  EXPECT_EQ(sut.spares(), 0u);
  bytes.reset();
  EXPECT_EQ(sut.get(1000)->data(), memory) << "as large as it was at first";
}

TEST(BytePoolTest, TheSmallestThatIsLargeEnoughIsTaken) {
  BytePool sut(3);
  std::array<std::shared_ptr<PooledBytes>, 3> bytes{sut.get(3000), sut.get(1000), sut.get(2000)};
  const std::byte* const middle = bytes[2]->data();
  bytes = {};
  EXPECT_EQ(sut.get(1001)->data(), middle);
  const auto larger = sut.get(3001);
  EXPECT_EQ(sut.spares(), 3u) << "none was large enough";
}

TEST(BytePoolTest, NoMoreAreKeptThanMayBeAndTheLargestStay) {
  BytePool sut(2);
  std::array<std::shared_ptr<PooledBytes>, 4> bytes{sut.get(2000), sut.get(1000), sut.get(3000), sut.get(500)};
  const std::byte *const large = bytes[0]->data(), *const largest = bytes[2]->data();
  for (auto& each : bytes) each.reset();
  EXPECT_EQ(sut.spares(), 2u);
  const auto first = sut.get(1), second = sut.get(1);
  EXPECT_EQ(first->data(), large);
  EXPECT_EQ(second->data(), largest);
}

TEST(BytePoolTest, WithoutSparesNothingIsKept) {
  BytePool sut(0);
  sut.get(10).reset();
  EXPECT_EQ(sut.spares(), 0u);
  EXPECT_EQ(sut.get(0)->size(), 0u);
}

TEST(BytePoolTest, BytesOutliveThePool) {
  std::optional<BytePool> sut(2);
  sut->get(10).reset();
  const auto bytes = sut->get(10);
  sut.reset();
  std::fill(bytes->begin(), bytes->end(), std::byte{1});
  EXPECT_EQ(std::span<const std::byte>(*bytes).size(), 10u);
}

TEST(BytePoolTest, ThreadsGiveBackWhatOthersGotAndNobodyHasWhatAnotherHas) {
  std::optional<BytePool> sut(4);
  constexpr int kThreads = 4, kRounds = 500, kHeld = 8;
  std::array<std::vector<std::shared_ptr<PooledBytes>>, kThreads> last;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const auto mark = static_cast<std::byte>(t + 1);
      auto& held = last[static_cast<std::size_t>(t)];
      for (int i = 0; i < kRounds; ++i) {
        held.push_back(sut->get(static_cast<std::size_t>(64 + 16 * ((i + t) % 5))));
        std::fill(held.back()->begin(), held.back()->end(), mark);
        if (held.size() < kHeld) continue;
        for (const auto& bytes : held)
          EXPECT_TRUE(std::all_of(bytes->begin(), bytes->end(), [&](std::byte b) { return b == mark; }));
        std::thread([given = std::exchange(held, {})] {}).join();  // Their end is another's.
      }
      held.push_back(sut->get(100));
    });
  for (auto& thread : threads) thread.join();
  EXPECT_LE(sut->spares(), 4u);
  threads.clear();
  for (auto& held : last) threads.emplace_back([given = std::move(held)]() mutable { given.clear(); });
  sut.reset();  // While they are given back.
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace paceline
