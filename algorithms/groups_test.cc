#include "algorithms/groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace paceline::algorithms {
namespace {

using Sets = std::vector<std::vector<std::int32_t>>;

Sets groups(std::int32_t workers, std::int32_t size, std::int64_t t) {
  Sets sets;
  for (const auto& group : butterfly_groups(workers, size, Version(t))) {
    sets.emplace_back();
    for (const Rank rank : group) sets.back().push_back(rank.value);
  }
  return sets;
}

std::vector<std::int32_t> masks(std::int32_t workers, std::int32_t size, std::int64_t t) {
  return butterfly_masks(workers, size, Version(t));
}

/// Calls f(P, S) for P = 4..64 and all S.
template <class F>
void for_all_sizes(F f) {
  for (std::int32_t workers = 4; workers <= 64; workers *= 2)
    for (std::int32_t size = 1; size <= workers; size *= 2) f(workers, size);
}

TEST(ButterflyTest, EightWorkersInFoursAreThoseOfThePaper) {
  EXPECT_EQ(groups(8, 4, 0), (Sets{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(groups(8, 4, 1), (Sets{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(groups(8, 4, 2), (Sets{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(groups(8, 4, 3), groups(8, 4, 0));
  EXPECT_EQ(masks(8, 4, 0), (std::vector{1, 2}));
  EXPECT_EQ(masks(8, 4, 1), (std::vector{4, 1}));
  EXPECT_EQ(masks(8, 4, 2), (std::vector{2, 4}));
}

TEST(ButterflyTest, OtherSizesAreThoseOfTheSpecification) {
  for (int t = 0; t < 3; ++t) EXPECT_EQ(masks(8, 2, t), std::vector{1 << t});
  EXPECT_EQ(groups(4, 2, 0), (Sets{{0, 1}, {2, 3}}));
  EXPECT_EQ(groups(4, 2, 1), (Sets{{0, 2}, {1, 3}}));
  EXPECT_EQ(masks(16, 4, 0), (std::vector{1, 2}));
  EXPECT_EQ(masks(16, 4, 1), (std::vector{4, 8}));
  EXPECT_EQ(masks(64, 8, 0), (std::vector{1, 2, 4}));
  EXPECT_EQ(masks(64, 8, 1), (std::vector{8, 16, 32}));
}

TEST(ButterflyTest, GroupsAreAPartitionIntoSetsOfSizeS) {
  for_all_sizes([](std::int32_t workers, std::int32_t size) {
    for (std::int64_t t = 0; t < 13; ++t) {
      std::vector<int> seen(static_cast<std::size_t>(workers));
      for (const auto& group : groups(workers, size, t)) {
        EXPECT_EQ(group.size(), static_cast<std::size_t>(size));
        EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
        for (const auto rank : group) ++seen[static_cast<std::size_t>(rank)];
      }
      EXPECT_EQ(seen, std::vector<int>(static_cast<std::size_t>(workers), 1)) << workers << " " << size << " " << t;
    }
  });
}

TEST(ButterflyTest, EveryMemberNamesTheSameGroup) {
  for_all_sizes([](std::int32_t workers, std::int32_t size) {
    for (std::int64_t t = 0; t < 7; ++t)
      for (const auto& group : butterfly_groups(workers, size, Version(t)))
        for (const Rank rank : group) EXPECT_EQ(butterfly_group_of(workers, size, Version(t), rank), group);
  });
}

TEST(ButterflyTest, EnoughConsecutiveAveragesGiveTheExactMeanFromAnyStart) {
  for_all_sizes([](std::int32_t workers, std::int32_t size) {
    if (size == 1) return;
    int n = 0, s = 0;
    while ((1 << n) < workers) ++n;
    while ((1 << s) < size) ++s;
    for (std::int64_t start = 0; start < 2 * n; ++start) {
      std::vector<double> x(static_cast<std::size_t>(workers));
      std::iota(x.begin(), x.end(), 0.0);
      for (std::int64_t t = start; t < start + (n + s - 1) / s; ++t) {
        for (const auto& group : groups(workers, size, t)) {
          double sum = 0;
          for (const auto rank : group) sum += x[static_cast<std::size_t>(rank)];
          for (const auto rank : group) x[static_cast<std::size_t>(rank)] = sum / size;
        }
      }
      for (const double value : x)
        EXPECT_DOUBLE_EQ(value, (workers - 1) / 2.0) << workers << " " << size << " " << start;
    }
  });
}

TEST(ButterflyTest, GroupsOfOneAreDefinedForAnyNumberOfWorkers) {
  EXPECT_EQ(groups(3, 1, 5), (Sets{{0}, {1}, {2}}));
  EXPECT_EQ(groups(1, 1, 0), (Sets{{0}}));
}

TEST(ButterflyTest, LateIterationsDoNotOverflow) {
  const std::int64_t t = std::int64_t{1} << 62;
  EXPECT_EQ(masks(8, 4, t), masks(8, 4, t % 3));
}

TEST(ButterflyTest, TheDefaultGroupIsTheRootRoundedUpToAPowerOfTwo) {
  const std::vector<std::pair<int, int>> expected{{1, 1}, {2, 2}, {4, 2}, {8, 4}, {16, 4}, {32, 8}, {64, 8}, {256, 16}};
  for (const auto& [workers, size] : expected) EXPECT_EQ(default_group_size(workers), size) << workers;
}

Sets strided(std::int32_t workers, std::int32_t size, std::int64_t t) {
  Sets sets;
  for (const auto& group : strided_groups(workers, size, Version(t))) {
    sets.emplace_back();
    for (const Rank rank : group) sets.back().push_back(rank.value);
  }
  return sets;
}

TEST(StridedTest, BlocksAndStridesTakeTurns) {
  EXPECT_EQ(strided(6, 3, 0), (Sets{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(strided(6, 3, 1), (Sets{{0, 2, 4}, {1, 3, 5}}));
  EXPECT_EQ(strided(6, 2, 1), (Sets{{0, 3}, {1, 4}, {2, 5}}));
  EXPECT_EQ(strided(6, 3, 2), strided(6, 3, 0));
  EXPECT_EQ(strided(5, 1, 3), (Sets{{0}, {1}, {2}, {3}, {4}}));
  EXPECT_EQ(strided(5, 5, 3), (Sets{{0, 1, 2, 3, 4}}));
}

TEST(StridedTest, TwoAveragesGiveTheMeanOfSSquaredWorkersFromAnyStart) {
  for (const std::int32_t size : {2, 3, 5, 6})
    for (const std::int64_t start : {0, 1}) {
      std::vector<double> x(static_cast<std::size_t>(size * size));
      std::iota(x.begin(), x.end(), 0.0);
      for (std::int64_t t = start; t < start + 2; ++t)
        for (const auto& group : strided(size * size, size, t)) {
          double sum = 0;
          for (const auto rank : group) sum += x[static_cast<std::size_t>(rank)];
          for (const auto rank : group) x[static_cast<std::size_t>(rank)] = sum / size;
        }
      for (const double value : x) EXPECT_DOUBLE_EQ(value, (size * size - 1) / 2.0);
    }
}

TEST(StridedTest, GroupsAreAPartitionOfAnyNumberOfWorkers) {
  for (std::int32_t workers = 2; workers <= 33; ++workers)
    for (std::int32_t size = 1; size <= workers; ++size) {
      if (workers % size != 0) continue;
      for (std::int64_t t = 0; t < 2; ++t) {
        std::vector<int> seen(static_cast<std::size_t>(workers));
        for (const auto& group : strided(workers, size, t)) {
          EXPECT_EQ(group.size(), static_cast<std::size_t>(size));
          EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
          for (const auto rank : group) ++seen[static_cast<std::size_t>(rank)];
        }
        EXPECT_EQ(seen, std::vector<int>(static_cast<std::size_t>(workers), 1));
      }
    }
}

TEST(StridedDeathTest, ASizeThatDoesNotDivideIsADefect) { EXPECT_DEATH(strided_groups(6, 4, Version(0)), "divides P"); }

TEST(ButterflyDeathTest, SizesThatAreNoPowersOfTwoAreDefects) {
  EXPECT_DEATH(butterfly_masks(6, 2, Version(0)), "powers of two");
  EXPECT_DEATH(butterfly_masks(4, 8, Version(0)), "1..P");
}

}  // namespace
}  // namespace paceline::algorithms
