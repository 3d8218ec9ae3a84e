#include "cli/report/timeline.h"

#include <gtest/gtest.h>

#include "cli/report/report_test_support.h"

namespace paceline::report {
namespace {

class TraceTest : public RunDirectoryTest {
 protected:
  static std::string span(int thread, const std::string& category, double begin_us, double duration_us) {
    return nlohmann::json{{"ph", "X"},     {"cat", category}, {"pid", 0},
                          {"tid", thread}, {"ts", begin_us},  {"dur", duration_us}}
        .dump();
  }
  std::optional<RunTrace> read() const {
    auto trace = read_trace(folder);
    EXPECT_TRUE(trace) << trace.error().text;
    return trace ? std::move(*trace) : std::nullopt;
  }
};

TEST_F(TraceTest, SpansGoToTheirWorkersAndTheNodesComeLast) {
  write("trace.json", "{\"traceEvents\":[\n" + span(0, "average", 3e6, 1e6) + ",\n" + span(2, "wait", 2e6, 1e6) +
                          ",\n" + span(1, "compute", 1e6, 5e5) + ",\n" + span(1, "publish", 1e6, 1e5) + "\n]}\n");
  const auto trace = read();
  ASSERT_TRUE(trace);
  ASSERT_EQ(trace->tracks.size(), 3u);
  EXPECT_EQ(trace->tracks[0].name, "worker 0");
  EXPECT_EQ(trace->tracks[2].name, "node 0");
  ASSERT_EQ(trace->tracks[0].spans.size(), 1u) << "publishing is a part of computing";
  EXPECT_EQ(trace->tracks[0].spans[0].begin_s, 0) << "the first span is the beginning";
  EXPECT_EQ(trace->tracks[1].spans[0].begin_s, 1);
  EXPECT_EQ(trace->duration_s, 3);
}

TEST_F(TraceTest, ARunThatStillGoesOnHasParts) {
  write("worker-0.trace", span(1, "compute", 0, 1e6) + "\n" + span(1, "wait", 1e6, 1e6) + "\n{\"ph\":\"X\",\"ca");
  write("worker-1.trace", span(2, "compute", 0, 4e6) + "\n{\"ph\":\"X\",\"cat\":7}\n");
  const auto trace = read();
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->tracks.size(), 2u);
  EXPECT_EQ(trace->tracks[0].spans.size(), 2u);
}

TEST_F(TraceTest, WithoutATraceThereIsNone) {
  EXPECT_FALSE(read());
  write("trace.json", "{\"traceEvents\":[\n]}\n");
  EXPECT_FALSE(read());
}

RunTrace steps(int updates) {
  RunTrace trace;
  trace.tracks = {{"worker 0", {}}, {"worker 1", {}}};
  for (int k = 0; k < updates; ++k) {
    trace.tracks[0].spans.push_back({k + 0.0, k + 0.25, Activity::compute});
    trace.tracks[0].spans.push_back({k + 0.25, k + 1.0, Activity::wait});
    trace.tracks[1].spans.push_back({k + 0.0, k + 1.0, Activity::compute});
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
  EXPECT_LT(made.dump().size(), 20'000u);
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
