#include "cli/recorded/run_trace.h"

#include <gtest/gtest.h>

#include "cli/recorded/recorded_test_support.h"
#include "runtime/base/json.h"

namespace paceline::recorded {
namespace {

class TraceTest : public RunDirectoryTest {
 protected:
  static std::string span(int thread, const std::string& category, double begin_us, double duration_us) {
    return json_text(nlohmann::json{
        {"ph", "X"}, {"cat", category}, {"pid", 0}, {"tid", thread}, {"ts", begin_us}, {"dur", duration_us}});
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

TEST_F(TraceTest, SpansKnowTheirUpdateAndTracksTheirWorker) {
  const char* named = R"({"ph":"X","cat":"compute","name":"compute 17","pid":0,"tid":3,"ts":0,"dur":5})";
  const char* numbered =
      R"({"ph":"X","cat":"compute","name":"compute","pid":0,"tid":3,"ts":5,"dur":5,"args":{"update":18}})";
  const char* counted = R"({"ph":"C","name":"loss","pid":0,"ts":7,"args":{"value":1.5}})";
  write("trace.json",
        std::string(named) + ",\n" + numbered + ",\n" + counted + ",\n" + span(0, "average", 0, 1e6) + "\n");
  const auto trace = read();
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->tracks[0].rank, 2);
  ASSERT_EQ(trace->tracks[0].spans.size(), 2u) << "a counter is no span";
  EXPECT_EQ(trace->tracks[0].spans[0].update, 17);
  EXPECT_EQ(trace->tracks[0].spans[1].update, 18);
  EXPECT_EQ(trace->tracks[1].rank, -1);
  EXPECT_EQ(trace->tracks[1].spans[0].update, -1);
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

}  // namespace
}  // namespace paceline::recorded
