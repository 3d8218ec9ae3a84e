#include "cli/running.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <vector>

#include "actors/protocol.h"
#include "actors/spans/span_writer.h"
#include "cli/list_view.h"
#include "runtime/base/json.h"
#include "runtime/wire/base64.h"

namespace paceline::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// What the agent of a worker that runs these tasks says, 3 s after they have begun.
json memory_of(const std::vector<std::string>& names) {
  const auto book = *actors::SpanBook::create();
  std::vector<std::unique_ptr<actors::SpanTrack>> tracks;
  for (const auto& name : names) {
    actors::Call call;
    call.task = TaskId{7};
    call.owner = "driver/1";
    call.name = name;
    tracks.push_back(std::make_unique<actors::SpanTrack>(*book));
    tracks.back()->begin(call, Instant(std::chrono::seconds(5)));
  }
  std::string bytes(actors::kSpanMemoryBytes, '\0');
  EXPECT_EQ(::pread(book->fd().get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  constexpr auto kNames = offsetof(actors::SpanMemory, names);
  return {{"head", wire::to_base64({bytes.data(), kNames})},
          {"names", wire::to_base64({bytes.data() + kNames, actors::kNamesBytes})},
          {"now_ns", 8'000'000'000}};
}

json lent(int worker, const json& owner, double cpus, const json& on, const std::vector<std::string>& runs) {
  return {{"worker", worker}, {"node", 1},     {"owner", owner},           {"cpus", cpus},
          {"on", on},         {"lent_s", 9.0}, {"spans", memory_of(runs)}, {"state", "lent"}};
}

std::string text_of(const actors::SpanName& name) { return name.text; }

json running_cluster() {
  json cluster = {
      {"nodes_expected", 2},
      {"workers",
       {lent(1, "driver/1", 1, nullptr, {"square"}), lent(2, "driver/1", 0.5, nullptr, {"half"}),
        lent(3, "driver/2", 1, nullptr, {"other"}), lent(4, "driver/1", 1, 1, {"pinned"}),
        lent(5, "driver/1", 1, nullptr, {"square"}), lent(6, "driver/1", 1, nullptr, {}), 3}},
      {"tasks", {{{"owner", "driver/1"}, {"cpus", 1.0}, {"on", nullptr}, {"node", 0}, {"state", "served"}}, 4}}};
  tell_running(cluster, text_of);
  return cluster;
}

TEST(RunningTest, WorkersSayWhatTheyRun) {
  const auto running = running_cluster()["workers"][0]["running"];
  ASSERT_EQ(running.size(), 1u);
  EXPECT_EQ(running[0],
            (json{{"name", "square"}, {"task", "7"}, {"owner", "driver/1"}, {"thread", 0}, {"for_s", 3.0}}));
  EXPECT_FALSE(running_cluster()["workers"][0].contains("spans"));
  EXPECT_EQ(running_cluster()["workers"][5]["running"], json::array());
}

TEST(RunningTest, TasksAreOfWhoHasLentWorkersForThem) {
  const auto running = running_cluster()["tasks"][0]["running"];
  ASSERT_EQ(running.size(), 2u);
  EXPECT_EQ(running[0]["worker"], 1);
  EXPECT_EQ(running[1]["worker"], 5);
  EXPECT_EQ(running[1]["node"], 1);
  const auto rows = rows_of(Listed::tasks, running_cluster(), {}).value();
  EXPECT_THAT(rows_text(Listed::tasks, rows), HasSubstr("2 square"));
}

TEST(RunningTest, WhatIsNoMemoryRunsNothing) {
  for (const json& spans : {json(), json(3), json{{"head", "AAAA"}}, json{{"head", 4}}, json{{"names", "%"}}}) {
    json status{{"workers", {{{"spans", spans}}}}};
    tell_running(status, text_of);
    EXPECT_EQ(status["workers"][0]["running"], json::array());
  }
  json nothing = json::array();
  tell_running(nothing, text_of);
  EXPECT_EQ(nothing, json::array());
}

TEST(RunningTest, NamesAreShortInTables) {
  EXPECT_EQ(without_parameters("until(std::function<void (int)> const&)"), "until");
  EXPECT_EQ(without_parameters("Store::get(int) const"), "Store::get");
  EXPECT_EQ(without_parameters("main::{lambda(int)#1}"), "main::{lambda(int)#1}");
  EXPECT_EQ(without_parameters("my task"), "my task");
  EXPECT_EQ(without_parameters("(x)"), "(x)");
  const auto of = [](std::vector<json> names) {
    json row{{"running", json::array()}};
    for (const auto& name : names) row["running"].push_back({{"name", name}});
    return running_text(row);
  };
  EXPECT_EQ(of({}), "-");
  EXPECT_EQ(of({"a(int)", "b", "a(int)", nullptr}), "2 a, b, unknown");
  EXPECT_EQ(of({"a", "b", "c", "d"}), "a, b, c, and others");
  EXPECT_EQ(of({"two\nlines"}), "two lines");
}

}  // namespace
}  // namespace paceline::cli
