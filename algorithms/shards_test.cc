#include "algorithms/shards.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace paceline::algorithms {
namespace {

Shards make(Shards::Options options) {
  auto shards = Shards::make(options);
  EXPECT_TRUE(shards) << (shards ? "" : shards.error().text);
  return *shards;
}

std::vector<std::int64_t> epoch(const Shards& shards, std::int32_t rank, std::int64_t number) {
  std::vector<std::int64_t> all, some;
  for (std::int64_t body = 0; body < shards.bodies_per_epoch(); ++body) {
    shards.indices(Rank(rank), number * shards.bodies_per_epoch() + body, some);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

TEST(PermutationTest, IsABijectionForEverySize) {
  for (std::int64_t size = 1; size <= 70; ++size) {
    const Permutation sut(size, 42);
    std::set<std::int64_t> values;
    for (std::int64_t at = 0; at < size; ++at) values.insert(sut(at));
    EXPECT_EQ(static_cast<std::int64_t>(values.size()), size);
    EXPECT_GE(*values.begin(), 0);
    EXPECT_LT(*values.rbegin(), size);
  }
}

TEST(PermutationTest, EveryElementReachesEveryPositionAboutEquallyOften) {
  constexpr std::int64_t size = 7, keys = 70'000;
  std::vector<std::vector<int>> counts(size, std::vector<int>(size));
  for (std::int64_t key = 0; key < keys; ++key) {
    const Permutation sut(size, static_cast<std::uint64_t>(key));
    for (std::int64_t at = 0; at < size; ++at)
      ++counts[static_cast<std::size_t>(at)][static_cast<std::size_t>(sut(at))];
  }
  const double expected = static_cast<double>(keys) / static_cast<double>(size);
  for (const auto& row : counts)
    for (const int count : row) EXPECT_NEAR(count, expected, 5 * std::sqrt(expected));
}

TEST(PermutationTest, IsTheSameOnEveryMachine) {
  std::vector<std::int64_t> values;
  const Permutation sut(10, 1);
  for (std::int64_t at = 0; at < 10; ++at) values.push_back(sut(at));
  EXPECT_EQ(values, (std::vector<std::int64_t>{8, 1, 3, 9, 7, 2, 0, 6, 5, 4}));  // From an independent program.
}

TEST(ShardsTest, EverySampleIsUsedExactlyOnceAnEpoch) {
  for (const bool rotate : {false, true}) {
    const auto sut = make({.samples = 60, .workers = 4, .batch = 5, .seed = 7, .rotate = rotate});
    for (std::int64_t number = 0; number < 9; ++number) {
      std::vector<std::int64_t> all;
      for (std::int32_t rank = 0; rank < 4; ++rank) {
        const auto own = epoch(sut, rank, number);
        EXPECT_EQ(own.size(), 15u);
        all.insert(all.end(), own.begin(), own.end());
      }
      std::sort(all.begin(), all.end());
      for (std::int64_t k = 0; k < 60; ++k) ASSERT_EQ(all[static_cast<std::size_t>(k)], k);
    }
  }
}

TEST(ShardsTest, WithRotationEverySamplePassesThroughEveryWorkerInPEpochs) {
  const auto sut = make({.samples = 60, .workers = 4, .batch = 5, .seed = 7, .rotate = true});
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    for (const std::int64_t first : {0, 4}) {
      std::set<std::int64_t> seen;
      for (std::int64_t number = first; number < first + 4; ++number) {
        const auto own = epoch(sut, rank, number);
        seen.insert(own.begin(), own.end());
      }
      EXPECT_EQ(seen.size(), 60u);
    }
    EXPECT_EQ(sut.shard_of(Rank(rank), 6), (rank + 6) % 4);
  }
}

TEST(ShardsTest, EveryEpochIsShuffledAnew) {
  for (const bool rotate : {false, true}) {
    const auto sut = make({.samples = 400, .workers = 2, .batch = 10, .seed = 7, .rotate = rotate});
    EXPECT_NE(epoch(sut, 0, 0), epoch(sut, 0, 1));
    EXPECT_NE(epoch(sut, 0, 0), epoch(sut, 0, 2));  // Under rotation the same shard number.
    const auto other = make({.samples = 400, .workers = 2, .batch = 10, .seed = 8, .rotate = rotate});
    EXPECT_NE(epoch(sut, 0, 0), epoch(other, 0, 0));
  }
}

TEST(ShardsTest, WithinADealOnlyTheOrderOfARotatedShardChanges) {
  const auto sut = make({.samples = 400, .workers = 2, .batch = 10, .seed = 7, .rotate = true});
  auto first = epoch(sut, 0, 0), again = epoch(sut, 1, 1);
  EXPECT_NE(first, again);
  std::sort(first.begin(), first.end());
  std::sort(again.begin(), again.end());
  EXPECT_EQ(first, again);
}

TEST(ShardsTest, ABodyDependsOnNothingButItsNumber) {
  const auto sut = make({.samples = 1000, .workers = 3, .batch = 32, .seed = 1});
  std::vector<std::int64_t> before, between, after;
  sut.indices(Rank(1), 37, before);
  sut.indices(Rank(2), 5, between);
  sut.indices(Rank(1), 37, after);
  EXPECT_EQ(before, after);
  EXPECT_NE(before, between);
}

TEST(ShardsTest, WhatDoesNotDivideIsDroppedAndDiffersFromEpochToEpoch) {
  const auto sut = make({.samples = 63, .workers = 4, .batch = 4, .seed = 3});
  EXPECT_EQ(sut.bodies_per_epoch(), 3);  // Shards of 15: 12 samples are used.
  EXPECT_EQ(sut.epoch_of(2), 0);
  EXPECT_EQ(sut.epoch_of(3), 1);
  std::set<std::int64_t> seen;
  for (std::int64_t number = 0; number < 20; ++number)
    for (std::int32_t rank = 0; rank < 4; ++rank)
      for (const auto index : epoch(sut, rank, number)) seen.insert(index);
  EXPECT_EQ(seen.size(), 63u);
}

TEST(ShardsTest, WhereThereAreFewerSamplesThanWorkersNoBatchIsOffered) {
  const auto shards = Shards::make({.samples = 3, .workers = 4, .batch = 32});
  ASSERT_FALSE(shards);
  EXPECT_TRUE(shards.error().text.ends_with("; use fewer workers")) << shards.error().text;
}

TEST(ShardsTest, ADataSetThatIsTooSmallIsRefused) {
  const auto shards = Shards::make({.samples = 100, .workers = 4, .batch = 32});
  ASSERT_FALSE(shards);
  EXPECT_EQ(shards.error().text,
            "the data set has 100 samples, too few for 4 workers with batches of 32; use fewer workers or a batch of "
            "at most 25");
  EXPECT_FALSE(Shards::make({.samples = 100, .workers = 0, .batch = 1}));
  EXPECT_FALSE(Shards::make({.samples = 100, .workers = 1, .batch = 0}));
}

}  // namespace
}  // namespace paceline::algorithms
