#include "cli/bench/benchmarks.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "cli/bench/assets.h"
#include "cli/bench/measure.h"

namespace paceline::bench {
namespace {

TEST(BenchmarksTest, NamesAreToldApartAndTheScriptHasEach) {
  const std::string script(asset("benchmarks.cpp"));
  std::set<std::string> names;
  for (const Benchmark& benchmark : kBenchmarks) {
    EXPECT_TRUE(names.insert(benchmark.name).second) << benchmark.name;
    EXPECT_NE(script.find("name == \"" + std::string(benchmark.name) + "\""), std::string::npos) << benchmark.name;
  }
}

TEST(BenchmarksTest, TheScriptsHeadersAreInTheExecutableToo) {
  for (const char* name : {"benchmarks.h", "measure.h"}) {
    EXPECT_FALSE(asset(name).empty()) << name;
    EXPECT_NE(asset("benchmarks.cpp").find("#include \"" + std::string(name) + "\""), std::string_view::npos);
  }
}

TEST(SummaryTest, TheMedianRoundAndHowFarTheyLieApart) {
  EXPECT_DOUBLE_EQ(summary({400, 100, 200}).per_second, 200);
  EXPECT_DOUBLE_EQ(summary({400, 100, 200}).spread, 1.5);
  EXPECT_DOUBLE_EQ(summary({400, 100, 200, 300}).per_second, 250);
  EXPECT_DOUBLE_EQ(summary({100}).spread, 0);
}

TEST(MeasureTest, ARoundIsALotAtLeast) {
  int lots = 0;
  const auto found = measure(0, 3, [&lots] {
    ++lots;
    return 10L;
  });
  EXPECT_EQ(lots, 1 + 3);  // The first one warms up.
  EXPECT_GT(found.per_second, 0);
}

TEST(LotSizeTest, IsATenthWhereLessThanASecondIsGiven) {
  EXPECT_EQ(lot_size(5000, 2), 5000);
  EXPECT_EQ(lot_size(5000, 1), 5000);
  EXPECT_EQ(lot_size(5000, 0.9), 500);
}

}  // namespace
}  // namespace paceline::bench
