#include "cli/recorded/recorded_decisions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "cli/recorded/recorded_test_support.h"
#include "cli/recorded/run_times.h"
#include "runtime/base/content_hash.h"
#include "runtime/base/json.h"

namespace paceline::recorded {
namespace {

using nlohmann::json;
using scheduler::Decision;
using testing::HasSubstr;
using Kind = Decision::Kind;

Instant at(int ms) { return Instant(std::chrono::milliseconds(ms)); }

/// Two updates of two workers; worker 1 takes 20 ms longer.
std::vector<Decision> two_updates() {
  std::vector<Decision> all{{.kind = Kind::joined, .rank = Rank{0}}, {.kind = Kind::joined, .rank = Rank{1}}};
  for (const int t : {0, 1}) {
    const Version v{t};
    const int begin = 31 * t;
    all.push_back({.kind = Kind::arrived, .rank = Rank{0}, .version = v, .at = at(begin + 10), .took = Duration(1)});
    all.push_back({.kind = Kind::arrived, .rank = Rank{1}, .version = v, .at = at(begin + 30), .took = Duration(1)});
    all.push_back({.kind = Kind::sealed,
                   .version = v,
                   .at = at(begin + 30),
                   .contributions = {{Rank{0}, v, 1}, {Rank{1}, v, 1}}});
    all.push_back({.kind = Kind::executed, .version = v, .at = at(begin + 31)});
  }
  return all;
}

class RecordedDecisionsTest : public RunDirectoryTest {
 protected:
  void write_run(const std::vector<Decision>& decisions, bool finish = true) const {
    write("script.cpp", "int main() {}");
    const auto hash = hash_of_file(folder + "/script.cpp").value();
    write(
        "configuration.json",
        json_text(json{{"options", {{"strategy", "allreduce"}, {"workers", 2}}},
                       {"program", {{"path", "/x"}, {"script", {{"path", folder + "/script.cpp"}, {"hash", hash}}}}}}));
    write("result.json", json_text(json{{"nodes", {0, 0}}, {"models", {{"0", "a"}, {"1", "a"}}}}));
    auto writer = scheduler::RecordWriter::create(scheduler::record_path(folder, NodeId{0}),
                                                  R"({"strategy": "allreduce", "first": 0, "updates": 2})");
    for (const auto& decision : decisions) writer->add(decision);
    if (finish) writer->finish();
  }
  void assert_refused(const std::string& why) const {
    const auto run = read_recorded(folder);
    ASSERT_FALSE(run);
    EXPECT_THAT(run.error().text, HasSubstr(why));
  }
};

TEST_F(RecordedDecisionsTest, ARunThatCameToItsEndIsRead) {
  write_run(two_updates());
  const auto run = read_recorded(folder);
  ASSERT_TRUE(run) << run.error().text;
  EXPECT_EQ(run->node_of, (std::vector<std::int32_t>{0, 0}));
  EXPECT_EQ(run->records.at(0).decisions, two_updates());
  EXPECT_TRUE(changes_since(*run).empty());
}

TEST_F(RecordedDecisionsTest, OthersAreRefused) {
  assert_refused("no directory of a training run");
  write_run(two_updates(), false);
  assert_refused("half written");
  write_run(two_updates());
  write("result.json", R"({"nodes": [0, 0], "interrupted": true})");
  assert_refused("was interrupted");
  write("result.json", R"({"nodes": [0, 0], "failure": "x"})");
  assert_refused("failed");
  write("result.json", R"({"nodes": [0, 1]})");
  assert_refused("decisions-1.bin");
  write("result.json", R"({"nodes": "nonsense"})");
  assert_refused("where the workers were");
}

TEST_F(RecordedDecisionsTest, WhatChangedIsNamed) {
  write_run(two_updates());
  auto run = read_recorded(folder);
  ASSERT_TRUE(run);
  run->result["files"] = {{folder + "/data", "0123456789abcdef"}};
  write("script.cpp", "int main() { }");
  const auto changes = changes_since(*run);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_THAT(changes[0], HasSubstr("script.cpp changed"));
  EXPECT_THAT(changes[1], HasSubstr("data is gone"));
}

TEST_F(RecordedDecisionsTest, WhatChangedInAFolderIsNamed) {
  write_run(two_updates());
  auto run = read_recorded(folder);
  ASSERT_TRUE(run);
  const std::string birds = folder + "/birds";
  std::filesystem::create_directory(birds);
  const auto write_bird = [&](const char* name, int year) {
    const std::string path = birds + "/" + name;
    std::ofstream(path) << name;
    std::filesystem::last_write_time(path, std::chrono::file_clock::from_sys(std::chrono::sys_seconds(
                                               std::chrono::sys_days(std::chrono::year(year) / 1 / 1))));
  };
  write_bird("owl.png", 2020);
  write_bird("wren.png", 2021);
  run->program["begun"] = "2022-01-01T00:00:00Z";
  run->result["files"] = {{birds, hash_of_folder(birds).value()}};
  EXPECT_TRUE(changes_since(*run).empty());
  write_bird("wren.png", 2023);
  EXPECT_THAT(changes_since(*run), testing::ElementsAre(birds + " changed: wren.png was written since the run began"));
  write_bird("wren.png", 2019);
  EXPECT_THAT(changes_since(*run),
              testing::ElementsAre(birds + " changed: files were added, removed, or replaced by older ones"));
}

TEST_F(RecordedDecisionsTest, ModelsAreComparedWorkerByWorker) {
  const json run{{"models", {{"0", "a"}, {"1", "b"}}}};
  EXPECT_TRUE(differing_models(run, run).empty());
  EXPECT_THAT(differing_models(run, {{"models", {{"0", "a"}, {"1", "c"}}}}),
              testing::ElementsAre(HasSubstr("worker 1 ended with other weights")));
  EXPECT_THAT(differing_models(run, {{"models", {{"1", "b"}}}}), testing::ElementsAre(HasSubstr("worker 0 did not")));
  EXPECT_EQ(differing_models(run, nullptr).size(), 2u);
  EXPECT_EQ(differing_models(nullptr, run).size(), 1u);
}

TEST_F(RecordedDecisionsTest, TimeIsWaitingUntilTheLastIsThereThenAveraging) {
  write_run(two_updates());
  const auto run = read_recorded(folder);
  ASSERT_TRUE(run);
  RunTrace trace;
  trace.tracks = {{"worker 0",
                   {{0, .010, Activity::compute, 0},
                    {.010, .031, Activity::wait, 0},
                    {.031, .041, Activity::compute, 1},
                    {.041, .062, Activity::wait, 1}},
                   0},
                  {"worker 1",
                   {{0, .030, Activity::compute, 0},
                    {.030, .031, Activity::wait, 0},
                    {.031, .061, Activity::compute, 1},
                    {.061, .062, Activity::wait, 1}},
                   1}};
  const auto times = reenact(*run, trace);
  ASSERT_TRUE(times) << times.error().text;
  const auto& [first, second] = std::tie(times->at(0), times->at(1));
  EXPECT_NEAR(first.compute_s, .020, 1e-9);
  EXPECT_NEAR(first.waiting_s, .040, 1e-9);
  EXPECT_NEAR(first.averaging_s, .002, 1e-9);
  EXPECT_NEAR(first.awaited_s, 0, 1e-9);
  EXPECT_NEAR(second.compute_s, .060, 1e-9);
  EXPECT_NEAR(second.waiting_s, 0, 1e-9);
  EXPECT_NEAR(second.awaited_s, .040, 1e-9);
  EXPECT_EQ(second.contributions, 2);
}

TEST_F(RecordedDecisionsTest, DecisionsThatDoNotLeadToTheEndAreNotReenacted) {
  auto decisions = two_updates();
  decisions.erase(decisions.begin() + 3);  // Worker 1 never arrives at update 0.
  write_run(decisions);
  const auto run = read_recorded(folder);
  ASSERT_TRUE(run);
  EXPECT_FALSE(reenact(*run, {}));
}

}  // namespace
}  // namespace paceline::recorded
