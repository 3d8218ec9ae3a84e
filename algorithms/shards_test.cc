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

/// What all workers read of the bodies [from, to).
std::multiset<std::int64_t> read(const Shards& shards, std::int32_t workers, std::int64_t from, std::int64_t to) {
  std::multiset<std::int64_t> all;
  std::vector<std::int64_t> some;
  for (std::int64_t body = from; body < to; ++body)
    for (std::int32_t rank = 0; rank < workers; ++rank) {
      shards.indices(Rank{rank}, body, some);
      all.insert(some.begin(), some.end());
    }
  return all;
}

Shards gone_on(Shards::Options options, const Shards& before, std::int64_t body, std::int32_t workers,
               std::int64_t batch, std::int64_t now) {
  options.workers = workers;
  options.batch = batch;
  options.begun = before.at(body);
  options.begun.body = now;
  return make(options);
}

TEST(ShardsTest, AJobThatGoesOnAsItWasReadsWhatItWouldHave) {
  for (const bool rotate : {false, true}) {
    const Shards::Options options{.samples = 103, .workers = 3, .batch = 4, .seed = 7, .rotate = rotate};
    const auto whole = make(options);
    for (const std::int64_t body : {0, 1, 7, 8, 9, 30}) {
      const auto sut = gone_on(options, whole, body, 3, 4, body);
      for (std::int64_t next = body; next < body + 40; ++next) {
        EXPECT_EQ(sut.epoch_of(next), whole.epoch_of(next));
        EXPECT_EQ(sut.at(next), whole.at(next));
        for (std::int32_t rank = 0; rank < 3; ++rank) {
          std::vector<std::int64_t> then, now;
          whole.indices(Rank{rank}, next, then);
          sut.indices(Rank{rank}, next, now);
          EXPECT_EQ(then, now) << body << " " << next;
        }
      }
    }
  }
}

TEST(ShardsTest, OtherWorkersReadWhatIsLeftOfAnEpoch) {
  for (const bool rotate : {false, true}) {
    const Shards::Options options{.samples = 103, .workers = 4, .batch = 5, .seed = 3, .rotate = rotate};
    const auto first = make(options);
    // 3 of 5 bodies of each of four; 1 of 7 of each of three, at another batch; then two.
    const auto second = gone_on(options, first, 5 + 3, 3, 2, 20);
    EXPECT_EQ(second.epoch_of(20), 1);
    EXPECT_EQ(second.first_end(), 20 + (103 - 60) / 3 / 2);
    const auto third = gone_on(options, second, 21, 2, 3, 100);
    auto all = read(first, 4, 5, 8);
    all.merge(read(second, 3, 20, 21));
    all.merge(read(third, 2, 100, third.first_end()));
    EXPECT_EQ(std::set(all.begin(), all.end()).size(), all.size()) << "some are read twice";
    EXPECT_EQ(all.size(), 60U + 6 + (103 - 66) / 6 * 6) << "and all are read but for a tail";
    EXPECT_EQ(third.epoch_of(third.first_end()), 2);
    const auto next = read(third, 2, third.first_end(), third.first_end() + third.bodies_per_epoch());
    EXPECT_EQ(std::set(next.begin(), next.end()).size(), 102U);
  }
}

/// With other strategies shards may rotate, or rotate no more: what is left of an epoch is what it was.
TEST(ShardsTest, AnEpochIsDealtToItsEndAsItWasBegun) {
  for (const bool rotate : {false, true}) {
    Shards::Options options{.samples = 103, .workers = 4, .batch = 5, .seed = 3, .rotate = rotate};
    const auto first = make(options);
    options.rotate = !rotate;
    const auto second = gone_on(options, first, 10 + 3, 4, 5, 40);
    EXPECT_EQ(second.at(40).rotated, rotate);
    auto all = read(first, 4, 10, 13);
    all.merge(read(second, 4, 40, second.first_end()));
    EXPECT_EQ(std::set(all.begin(), all.end()).size(), 100U);
    EXPECT_EQ(all.size(), 100U);
    EXPECT_EQ(second.at(second.first_end()).rotated, !rotate);
    const auto anew = gone_on(options, first, 15, 4, 5, 40);
    EXPECT_EQ(read(anew, 4, 40, 45), read(make(options), 4, 15, 20)) << "nothing of it was done";
  }
}

TEST(ShardsTest, WhereTooLittleIsLeftTheNextEpochBegins) {
  const Shards::Options options{.samples = 20, .workers = 2, .batch = 3};
  const auto first = make(options);
  const auto sut = gone_on(options, first, 2, 4, 4, 2);
  EXPECT_EQ(sut.first_end(), 2 + 2 / 4);
  EXPECT_EQ(sut.epoch_of(2), 1);
  EXPECT_EQ(read(sut, 4, 2, 3).size(), 16U);
}

TEST(ShardsTest, APlaceIsReadFromItsText) {
  const Shards::Place place{0, 3, {{4, 32, 100}, {2, 64, 10}}};
  EXPECT_EQ(text_of(place), "3: 4x32x100 2x64x10");
  EXPECT_EQ(place_of(text_of(place)), place);
  EXPECT_EQ(place_of("0:"), Shards::Place{});
  EXPECT_EQ(place_of("2r: 4x5x6"), (Shards::Place{0, 2, {{4, 5, 6}}, true}));
  EXPECT_EQ(text_of(*place_of("2r: 4x5x6")), "2r: 4x5x6");
  for (const char* const text : {"", "3", "x:", "3: 4x32", "3: 4y32x100", "3: 4x32x100 y", "3r", "3rr:"})
    EXPECT_EQ(place_of(text), std::nullopt) << text;
}

TEST(ShardsTest, WhatWasDoneOfAnotherDataSetIsRefused) {
  Shards::Options options{.samples = 20, .workers = 2, .batch = 3};
  options.begun.parts = {{4, 3, 2}};
  EXPECT_FALSE(Shards::make(options));
  options.begun.parts = {{4, 3, 1}};
  EXPECT_TRUE(Shards::make(options));
  options.begun.parts = {{4, 0, 1}};
  EXPECT_FALSE(Shards::make(options));
}

}  // namespace
}  // namespace paceline::algorithms
