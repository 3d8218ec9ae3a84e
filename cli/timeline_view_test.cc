#include "cli/timeline_view.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <random>
#include <vector>

#include "actors/protocol.h"
#include "actors/spans/span_writer.h"
#include "runtime/base/json.h"
#include "runtime/wire/base64.h"

namespace paceline::cli {
namespace {

using nlohmann::json;
using std::chrono::microseconds;

constexpr Instant at(int us) { return Instant(microseconds(us)); }

actors::Call call(std::uint64_t task, const std::string& name) {
  actors::Call call;
  call.task = TaskId{task};
  call.owner = "driver/1";
  call.name = name;
  return call;
}

/// A worker that has run `square` from 100 to 150 us and, failing, from 200 to 220, whatever `more` does besides.
template <class More>
json worker(std::int64_t node, int number, More more) {
  const auto book = *actors::SpanBook::create();
  actors::SpanTrack track(*book);
  track.begin(call(7, "square"), at(100));
  track.end(at(150), false);
  track.begin(call(8, "square"), at(200));
  track.end(at(220), true);
  more(*book, track);
  std::string bytes(actors::kSpanMemoryBytes, '\0');
  EXPECT_EQ(::pread(book->fd().get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  constexpr auto kNames = offsetof(actors::SpanMemory, names);
  constexpr auto kSpans = offsetof(actors::SpanMemory, spans);
  return {{"node", node},
          {"worker", number},
          {"name", "tasks"},
          {"class", ""},
          {"ended", false},
          {"now_ns", 1'000'000},
          {"head", wire::to_base64({bytes.data(), kNames})},
          {"names", wire::to_base64({bytes.data() + kNames, kSpans - kNames})},
          {"over", wire::to_base64({bytes.data() + kSpans, 10 * actors::kRecordBytes})}};
}
json worker(std::int64_t node, int number) {
  return worker(node, number, [](actors::SpanBook&, actors::SpanTrack&) {});
}

struct Written {
  std::vector<json> events;
  TimelineFigures figures;
  std::vector<json> of(const std::string& phase) const {
    std::vector<json> found;
    for (const auto& event : events)
      if (event.at("ph") == phase) found.push_back(event);
    return found;
  }
};

Written written(const json& status) {
  Written written;
  written.figures = write_timeline(
      status, [](const actors::SpanName& name) { return name.text; },
      [&](std::string_view event) { written.events.push_back(json::parse(event)); });
  return written;
}

TEST(TimelineViewTest, ACallIsASpanOfItsWorkersTrack) {
  const auto trace = written({{"spans", {worker(1, 3)}}});
  const auto spans = trace.of("X");
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0], json::parse(R"({"ph":"X","cat":"task","name":"square","pid":1,"tid":3072,"ts":0.0,"dur":50.0,
                                      "args":{"worker":3,"task":"7","owner":"driver/1","failed":false}})"));
  EXPECT_EQ(spans[1]["ts"], 100.0);
  EXPECT_EQ(spans[1]["args"]["failed"], true);
  const auto names = trace.of("M");
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0]["args"]["name"], "node 1");
  EXPECT_EQ(names[1]["args"]["name"], "worker 3: tasks");
  EXPECT_EQ(trace.figures.spans, 2u);
  EXPECT_EQ(trace.figures.workers, 1u);
}

TEST(TimelineViewTest, ActorsAreCalledByClassAndName) {
  auto actor = worker(0, 1);
  actor.update({{"name", "counter"}, {"class", "(anonymous namespace)::Counter"}, {"ended", true}});
  auto trace = written({{"spans", {actor}}});
  EXPECT_EQ(trace.of("M")[1]["args"]["name"], "worker 1: Counter counter (ended)");
  EXPECT_EQ(trace.of("X")[0]["cat"], "call");
  actor.update({{"name", ""}, {"ended", false}});
  EXPECT_EQ(written({{"spans", {actor}}}).of("M")[1]["args"]["name"], "worker 1: Counter");
}

TEST(TimelineViewTest, WhatRunsGoesOnUntilNowOrUntilItsWorkerEnded) {
  const auto runs = [](actors::SpanBook&, actors::SpanTrack& track) { track.begin(call(9, "long"), at(300)); };
  auto running = worker(0, 1, runs);
  const auto spans = written({{"spans", {running}}}).of("X");
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[2]["name"], "long");
  EXPECT_EQ(spans[2]["dur"], 700.0);
  EXPECT_EQ(spans[2]["args"]["runs"], true);
  running["ended"] = true;
  const auto last = written({{"spans", {running}}}).of("X").at(2);
  EXPECT_EQ(last["dur"], 700.0);
  EXPECT_EQ(last["args"]["failed"], true);
  EXPECT_EQ(last["args"]["died"], true);
  EXPECT_FALSE(last["args"].contains("runs"));
}

TEST(TimelineViewTest, CoroutinesMayOverlapAndConstructorsAreNoCalls) {
  const auto trace = written({{"spans", {worker(0, 1, [](actors::SpanBook&, actors::SpanTrack& track) {
                                 track.begin("Counter constructor", "driver/1", at(300));
                                 track.end(at(310), false);
                                 track.begin(call(9, "waits"), at(400));
                                 const auto left = track.leave();
                                 track.begin(call(10, "square"), at(410));
                                 track.end(at(420), false);
                                 track.end(left, at(500), false);
                               })}}});
  EXPECT_EQ(trace.of("X")[2]["cat"], "constructor");
  ASSERT_EQ(trace.of("b").size(), 1u);
  ASSERT_EQ(trace.of("e").size(), 1u);
  EXPECT_EQ(trace.of("b")[0]["name"], "waits");
  EXPECT_EQ(trace.of("b")[0]["id"], trace.of("e")[0]["id"]);
  EXPECT_EQ(trace.of("e")[0]["ts"].get<double>() - trace.of("b")[0]["ts"].get<double>(), 100.0);
}

TEST(TimelineViewTest, ThreadsHaveTracksAndNodesClocks) {
  const auto second = [](actors::SpanBook& book, actors::SpanTrack&) {
    actors::SpanTrack track(book);
    track.begin(call(9, "other"), at(100));
    track.end(at(110), false);
  };
  const auto trace =
      written({{"nodes", {{{"node", 0}, {"clock_ns", 5'000'000}}, {{"node", 1}, {"clock_ns", 5'500'000}}}},
               {"spans", {worker(0, 1, second), worker(1, 1)}}});
  const auto spans = trace.of("X");
  ASSERT_EQ(spans.size(), 5u);
  EXPECT_EQ(spans[2]["tid"], spans[0]["tid"].get<int>() + 1);
  EXPECT_EQ(spans[3]["pid"], 1);
  EXPECT_EQ(spans[3]["ts"], 500.0) << "that of its node is half a millisecond ahead";
}

TEST(TimelineViewTest, WhatIsNotKeptIsCounted) {
  auto status = json{{"nodes", {{{"node", 0}, {"spans_left_out", 2}}}},
                     {"spans", {worker(0, 1, [](actors::SpanBook&, actors::SpanTrack& track) {
                        for (int i = 0; i < 2049; ++i) {
                          track.begin(call(9, "x"), at(300 + i));
                          track.end(at(300 + i), false);
                        }
                      })}}};
  const auto figures = written(status).figures;
  EXPECT_EQ(figures.lost, 3u);
  EXPECT_EQ(timeline_text("a.json", figures),
            "a.json: " + std::to_string(figures.spans) +
                " calls of 1 worker, 3 older ones are not kept, 2 workers left out: too many; open it in "
                "https://ui.perfetto.dev\n");
  EXPECT_EQ(timeline_json("a.json", figures)["lost"], 3);
}

TEST(TimelineViewTest, AnythingMakesATrace) {
  std::mt19937 random(3);
  const std::vector<json> values = {nullptr,
                                    true,
                                    -1,
                                    1e300,
                                    -1e300,
                                    4,
                                    "x",
                                    "%%%",
                                    json::array({1}),
                                    json::object(),
                                    std::int64_t{-9'223'372'036'854'775'807},
                                    std::uint64_t{18'446'744'073'709'551'615u}};
  for (int round = 0; round < 300; ++round) {
    auto one = worker(0, 1);
    json status{{"nodes", {{{"node", 0}, {"clock_ns", values[random() % values.size()]}}, 3}}, {"spans", {one, 4}}};
    for (int i = 0; i < 3; ++i) {
      auto& given = status["spans"][0];
      auto field = given.begin();
      std::advance(field, random() % given.size());
      given[field.key()] = values[random() % values.size()];
    }
    for (const auto& span : written(status).of("X")) EXPECT_GE(span["ts"].get<double>(), 0);
  }
  EXPECT_TRUE(written(json()).events.empty());
  EXPECT_TRUE(written({{"spans", 3}, {"nodes", "x"}}).events.empty());
}

}  // namespace
}  // namespace paceline::cli
