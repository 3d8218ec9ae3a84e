#include "algorithms/topology/pairs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace paceline::algorithms {
namespace {

/// How often each other rank is chosen in `steps` steps; -1: nobody.
std::map<std::int32_t, int> chosen(std::int32_t workers, std::int32_t rank, Pairing pairing, int steps = 4000) {
  std::map<std::int32_t, int> count;
  for (int step = 0; step < steps; ++step)
    ++count[partner(7, workers, Rank(rank), Version(step), pairing).value_or(Rank(-1)).value];
  return count;
}

TEST(PartnerTest, RandomIsUniformOverTheOthers) {
  for (std::int32_t workers = 2; workers <= 33; ++workers)
    for (const std::int32_t rank : {0, workers / 2, workers - 1}) {
      const auto count = chosen(workers, rank, Pairing::random);
      EXPECT_EQ(count.size(), static_cast<std::size_t>(workers - 1));
      EXPECT_FALSE(count.contains(rank) || count.contains(-1) || count.contains(workers));
      const double expected = 4000.0 / (workers - 1);
      for (const auto& [other, times] : count) EXPECT_NEAR(times, expected, 6 * std::sqrt(expected)) << other;
    }
}

TEST(PartnerTest, OddRanksPickEvenOnesAndEvenOnesPickNobody) {
  for (std::int32_t workers = 2; workers <= 32; workers += 2) {
    const auto count = chosen(workers, workers - 1, Pairing::bipartite);
    EXPECT_EQ(count.size(), static_cast<std::size_t>(workers / 2));
    for (const auto& [other, times] : count) EXPECT_TRUE(other >= 0 && other < workers && other % 2 == 0) << other;
    EXPECT_EQ(chosen(workers, 0, Pairing::bipartite), (std::map<std::int32_t, int>{{-1, 4000}}));
  }
}

TEST(PartnerTest, IsAFunctionOfSeedStepAndRank) {
  const auto draws = [](std::uint64_t seed, std::int32_t rank) {
    std::vector<std::int32_t> partners;
    for (int step = 0; step < 20; ++step)
      partners.push_back(partner(seed, 64, Rank(rank), Version(step), Pairing::random)->value);
    return partners;
  };
  EXPECT_EQ(draws(1, 3), draws(1, 3));
  EXPECT_NE(draws(1, 3), draws(2, 3));
  EXPECT_NE(draws(1, 3), draws(1, 4));
}

TEST(PartnerTest, AloneThereIsNobody) { EXPECT_EQ(partner(0, 1, Rank(0), Version(0), Pairing::random), std::nullopt); }

TEST(PartnerDeathTest, BipartiteNeedsAnEvenNumber) {
  EXPECT_DEATH(partner(0, 3, Rank(0), Version(0), Pairing::bipartite), "even number");
}

}  // namespace
}  // namespace paceline::algorithms
