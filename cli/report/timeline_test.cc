#include "cli/report/timeline.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::report {
namespace {

recorded::RunTrace steps(int updates) {
  recorded::RunTrace trace;
  trace.tracks = {{"worker 0", {}}, {"worker 1", {}}};
  for (int k = 0; k < updates; ++k) {
    trace.tracks[0].spans.push_back({k + 0.0, k + 0.25, recorded::Activity::compute});
    trace.tracks[0].spans.push_back({k + 0.25, k + 1.0, recorded::Activity::wait});
    trace.tracks[1].spans.push_back({k + 0.0, k + 1.0, recorded::Activity::compute});
  }
  trace.duration_s = updates;
  return trace;
}

TEST(TimelineTest, SharesAreThePercentOfEachSlice) {
  const auto made = timeline(steps(100), {.slices = 10, .spans_max = 2000});
  ASSERT_EQ(made["shares"][0]["compute"].size(), 10u);
  EXPECT_EQ(made["shares"][0]["compute"][3], 25);
  EXPECT_EQ(made["shares"][0]["wait"][9], 75);
  EXPECT_EQ(made["shares"][1]["compute"][0], 100);
  EXPECT_FALSE(made["shares"][1].contains("wait"));
  EXPECT_DOUBLE_EQ(made["totals"][0]["wait"].get<double>(), 75);
}

TEST(TimelineTest, ALongRunIsShownByExcerptsOfSomeUpdates) {
  const auto made = timeline(steps(10'000), {.slices = 10, .spans_max = 2000});
  ASSERT_EQ(made["excerpts"].size(), 3u);
  EXPECT_EQ(made["excerpts"][0]["begin_s"], 0);
  EXPECT_EQ(made["excerpts"][2]["end_s"], 10'000);
  for (const auto& excerpt : made["excerpts"]) {
    EXPECT_NEAR(excerpt["end_s"].get<double>() - excerpt["begin_s"].get<double>(), 16, 0.01);
    EXPECT_GE(excerpt["spans"].size(), 48u);
  }
  EXPECT_LT(json_text(made).size(), 20'000u);
}

TEST(TimelineTest, AShortRunIsShownWhole) {
  const auto made = timeline(steps(5), {});
  ASSERT_EQ(made["excerpts"].size(), 1u);
  EXPECT_EQ(made["excerpts"][0]["spans"].size(), 15u);
}

TEST(TimelineTest, AnExcerptNeverHoldsMoreSpansThanAllowed) {
  const auto made = timeline(steps(1000), {.slices = 10, .spans_max = 12});
  for (const auto& excerpt : made["excerpts"]) EXPECT_LE(excerpt["spans"].size(), 12u);
}

}  // namespace
}  // namespace paceline::report
