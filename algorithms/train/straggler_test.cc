#include "algorithms/train/straggler.h"

#include <gtest/gtest.h>
#include <set>

namespace paceline::train {
namespace {

TEST(StragglerTest, ASlowWorkerSleepsTheRestOfItsFactor) {
  const Straggler slow(job::parse_slow_workers("3:4x,1:1.5x").value(), {}, 3, 4, 1);
  EXPECT_TRUE(slow.is_slow());
  EXPECT_DOUBLE_EQ(slow.after(0.02), 0.06);
  const Straggler other(job::parse_slow_workers("3:4x").value(), {}, 2, 4, 1);
  EXPECT_FALSE(other.is_slow());
  EXPECT_DOUBLE_EQ(other.after(0.02), 0);
}

TEST(StragglerTest, ExactlyTheNamedNumberOfWorkersIsDelayedInEveryUpdate) {
  const auto delay = job::parse_random_delay("2:40ms").value();
  std::set<std::set<int>> chosen;
  for (std::int64_t update = 0; update < 200; ++update) {
    std::set<int> delayed;
    for (int rank = 0; rank < 5; ++rank) {
      const double seconds = Straggler({}, delay, rank, 5, 7).before(update);
      if (seconds > 0) {
        EXPECT_DOUBLE_EQ(seconds, 0.04);
        delayed.insert(rank);
      }
    }
    EXPECT_EQ(delayed.size(), 2U) << update;
    chosen.insert(delayed);
  }
  EXPECT_EQ(chosen.size(), 10U);  // All pairs of five occur.
}

TEST(StragglerTest, AllAreDelayedWhenAsManyAreAskedFor) {
  for (int rank = 0; rank < 3; ++rank) EXPECT_GT(Straggler({}, {3, 0.1}, rank, 3, 1).before(0), 0);
  EXPECT_EQ(Straggler({}, {}, 0, 3, 1).before(0), 0);
}

}  // namespace
}  // namespace paceline::train
