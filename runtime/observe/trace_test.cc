#include "runtime/observe/trace.h"
#include "runtime/base/json.h"

#include <gtest/gtest.h>

#include <limits>

#include "runtime/observe/observe_test_support.h"
#include "runtime/observe/trace_event.h"

namespace paceline::observe {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

class TraceTest : public FolderTest {
 protected:
  TraceWriter open(const std::string& name) {
    auto writer = TraceWriter::open(folder + "/" + name);
    EXPECT_TRUE(writer);
    return std::move(*writer);
  }
};

TEST_F(TraceTest, PartsAreJoinedIntoOneJsonObjectAndRemoved) {
  {
    auto a = open("a.trace"), b = open("b.trace");
    a.name_track(3, 1, "worker 3", "compute \"main\"\xff");
    a.span(3, 1, "compute", Instant(1'234'567ns), Instant(2'234'568ns), R"({"version":7})");
    b.span(0, 2, "average", Instant(5us), Instant(4us));
  }
  ASSERT_TRUE(join_traces(folder));
  EXPECT_EQ(files(), 1u);
  const Json events = Json::parse(text_of(folder + "/trace.json")).at("traceEvents");
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].at("args").at("name"), "worker 3");
  EXPECT_EQ(events[1].at("name"), "thread_name");
  EXPECT_EQ(
      events[2],
      Json::parse(
          R"({"ph":"X","cat":"compute","name":"compute","pid":3,"tid":1,"ts":1234.567,"dur":1000.001,"args":{"version":7}})"));
  EXPECT_EQ(events[3].at("dur"), 0);
}

TEST(TraceEventTest, SpansMayHaveNamesOfTheirOwnAndOverlap) {
  std::string line;
  write_span(line, {1, 2}, "task", "square \"x\"", Instant(1us), Instant(3us), "");
  EXPECT_EQ(Json::parse(line),
            Json::parse(R"({"ph":"X","cat":"task","name":"square \"x\"","pid":1,"tid":2,"ts":1.0,"dur":2.0})"));
  for (const bool begins : {true, false}) {
    write_span_end(line, begins, {1, 2}, "call", "waits", 7, Instant(1us), begins ? R"({"task":"9"})" : "");
    const Json event = Json::parse(line);
    EXPECT_EQ(event.at("ph"), begins ? "b" : "e");
    EXPECT_EQ(event.at("id"), "7");
    EXPECT_EQ(event.contains("args"), begins);
  }
}

TEST_F(TraceTest, ACounterIsANumberOfItsProcess) {
  {
    auto writer = open("a.trace");
    writer.counter(3, "samples/s", Instant(1'500us), 640.5);
    writer.counter(3, "loss", Instant(2ms), std::numeric_limits<double>::quiet_NaN());
  }
  ASSERT_TRUE(join_traces(folder));
  const Json events = Json::parse(text_of(folder + "/trace.json")).at("traceEvents");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0], Json::parse(R"({"ph":"C","name":"samples/s","pid":3,"ts":1500.0,"args":{"value":640.5}})"));
}

TEST_F(TraceTest, LineThatAKilledProcessLeftUnfinishedIsDropped) {
  open("a.trace").span(1, 1, "wait", Instant(1us), Instant(2us));
  std::ofstream(folder + "/a.trace", std::ios::app) << "{\"ph\":\"X\",\"na\n{\"ph\":\"X\"}";
  ASSERT_TRUE(join_traces(folder));
  EXPECT_EQ(Json::parse(text_of(folder + "/trace.json")).at("traceEvents").size(), 1u);
}

TEST_F(TraceTest, FullDiskKeepsThePartsAndLeavesNoHalfTrace) {
  {
    auto a = open("a.trace");
    for (int i = 0; i < 1000; ++i) a.span(1, 1, "wait", Instant(1us), Instant(2us));
  }
  EXPECT_TRUE(with_full_disk(4096, [&] { return !join_traces(folder); }));
  EXPECT_EQ(files(), 1u);
  EXPECT_TRUE(join_traces(folder));
}

TEST_F(TraceTest, FullDiskIsToldOnce) {
  auto writer = TraceWriter::open("/dev/full");
  ASSERT_TRUE(writer);
  writer->span(1, 1, "wait", Instant(0s), Instant(1s));
  writer->flush();
  const auto told = writer->error();
  ASSERT_FALSE(told);
  EXPECT_NE(told.error().text.find("No space left on device"), std::string::npos);
  EXPECT_TRUE(writer->error());
}

}  // namespace
}  // namespace paceline::observe
