#include "cli/report/thinning.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace paceline::report {
namespace {

std::vector<recorded::Point> ramp(int points) {
  std::vector<recorded::Point> made;
  for (int k = 0; k < points; ++k) made.push_back({double(k), double(10 * k), double(k % 7)});
  return made;
}

TEST(ThinningTest, AShortCurveStaysAsItIs) { EXPECT_EQ(thinned(ramp(100), 100).size(), 100u); }

TEST(ThinningTest, ALongCurveKeepsItsEndsItsOrderAndItsSpikes) {
  auto points = ramp(100'000);
  points[54'321].value = 1e6;
  points[77'777].value = -1e6;
  const auto kept = thinned(points, 1000);
  EXPECT_LE(kept.size(), 1000u);
  EXPECT_GE(kept.size(), 500u);
  EXPECT_EQ(kept.front().clock_s, 0);
  EXPECT_EQ(kept.back().clock_s, 99'999);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(), [](auto& a, auto& b) { return a.clock_s < b.clock_s; }));
  const auto has = [&](double value) {
    return std::any_of(kept.begin(), kept.end(), [&](const recorded::Point& point) { return point.value == value; });
  };
  EXPECT_TRUE(has(1e6));
  EXPECT_TRUE(has(-1e6));
}

TEST(ThinningTest, OfAPeriodOnlyTheChangesAndTheEndAreKept) {
  const std::vector<recorded::Point> period{{0, 0, 20}, {1, 0, 20}, {2, 0, 10}, {3, 0, 10}, {4, 0, 10}};
  const auto kept = changes(period);
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[1].clock_s, 2);
  EXPECT_EQ(kept[2].clock_s, 4);
  EXPECT_TRUE(changes({}).empty());
}

}  // namespace
}  // namespace paceline::report
