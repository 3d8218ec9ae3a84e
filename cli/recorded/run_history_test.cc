#include "cli/recorded/run_history.h"

#include <gtest/gtest.h>

#include "cli/recorded/recorded_test_support.h"
#include "runtime/base/json.h"

namespace paceline::recorded {
namespace {

class RunHistoryTest : public RunDirectoryTest {
 protected:
  RunHistory read() const {
    auto run = read_run(folder);
    EXPECT_TRUE(run) << run.error().text;
    return run ? std::move(*run) : RunHistory{};
  }
  Error error() const {
    const auto run = read_run(folder);
    EXPECT_FALSE(run);
    return run ? Error{} : run.error();
  }
};

TEST_F(RunHistoryTest, TheCurvesComeFromTheProgressLinesAndEvaluations) {
  write_small_run();
  const RunHistory run = read();
  ASSERT_EQ(run.loss.size(), 2u);
  EXPECT_EQ(run.loss[1].clock_s, 2);
  EXPECT_EQ(run.loss[1].samples, 200);
  EXPECT_EQ(run.loss[1].value, 2.0);
  ASSERT_EQ(run.evaluations.size(), 1u);
  EXPECT_EQ(run.evaluations[0].value, 0.6);
  EXPECT_EQ(run.evaluations[0].samples, 150) << "half-way between the lines before and after";
  EXPECT_EQ(run.staleness, (std::vector<std::int64_t>{2, 1})) << "the last line's, which counts from the start";
}

TEST_F(RunHistoryTest, WhatWorkersLogBecomesACurveOfTheirAverage) {
  const auto logged = [](int worker, int update, double clock_s, double value) {
    return json_text(nlohmann::json{{"event", "metric"},
                                    {"name", "rate"},
                                    {"worker", worker},
                                    {"update", update},
                                    {"clock_s", clock_s},
                                    {"value", value}}) +
           "\n";
  };
  write_small_run();
  write("metrics.jsonl", progress(1, 1, 2.5, 100) + logged(0, 1, 1.5, 10) + logged(1, 1, 1.6, 20) +
                             logged(0, 2, 1.9, 40) + progress(2, 2, 2.0, 200));
  const auto run = read();
  ASSERT_TRUE(run.logged.contains("rate"));
  const auto& curve = run.logged.at("rate");
  ASSERT_EQ(curve.size(), 2u) << "a point an update";
  EXPECT_EQ(curve[0].clock_s, 1.5);
  EXPECT_EQ(curve[0].samples, 150);
  EXPECT_EQ(curve[0].value, 15);
  EXPECT_EQ(curve[1].value, 30) << "worker 1 has said nothing new";
}

TEST_F(RunHistoryTest, ARunWithoutAResultGetsItsFiguresFromItsMetrics) {
  write_small_run();
  const RunHistory run = read();
  EXPECT_EQ(run.strategy(), "wagma");
  EXPECT_EQ(run.workers(), 2);
  EXPECT_EQ(run.result["samples_per_s"], 100);
  EXPECT_EQ(run.result["global_averages"], 2);
  EXPECT_EQ(run.outcome, "no result: it still runs, or was killed, at update 2 of 100");
}

TEST_F(RunHistoryTest, TheResultSaysHowItEnded) {
  write_small_run();
  write("result.json", R"({"event": "result", "interrupted": true})");
  EXPECT_EQ(read().outcome, "interrupted at update 2 of 100");
  write("result.json", R"({"event": "result", "time_to_target_s": 1.5})");
  EXPECT_EQ(read().outcome, "reached the target of 80.0 % in 1.5 s");
  write("result.json", R"({"event": "result", "failure": "worker 1: no"})");
  EXPECT_TRUE(read().failed);
  EXPECT_EQ(read().outcome, "failed at update 2 of 100: worker 1: no");
}

TEST_F(RunHistoryTest, WhoWasLostIsSaid) {
  write_small_run();
  write("result.json", R"({"event": "result", "time_to_target_s": 1.5, "lost": [1, 3]})");
  EXPECT_EQ(read().outcome, "reached the target of 80.0 % in 1.5 s; lost workers 1, 3");
  write("result.json", R"({"event": "result", "interrupted": true, "lost": [2]})");
  EXPECT_EQ(read().outcome, "interrupted at update 2 of 100; lost worker 2");
}

TEST_F(RunHistoryTest, ALastLineThatIsHalfWrittenIsLeftOutSilently) {
  write_small_run();
  write("metrics.jsonl", progress(1, 1, 2.5, 100) + progress(2, 2, 2, 200).substr(0, 60));
  const RunHistory run = read();
  EXPECT_EQ(run.loss.size(), 1u);
  EXPECT_TRUE(run.notes.empty());
}

TEST_F(RunHistoryTest, LinesThatAreNoEventsAreCounted) {
  write_small_run();
  write("metrics.jsonl", "not json\n[1]\n{\"event\":\"progress\",\"clock_s\":\"x\"}\n" + progress(1, 1, 2.5, 100));
  const RunHistory run = read();
  EXPECT_EQ(run.loss.size(), 1u);
  EXPECT_EQ(run.notes, std::vector<std::string>{"3 lines of metrics.jsonl are no events"});
}

TEST_F(RunHistoryTest, OfSeveralRunsInOneFileTheLastOneCounts) {
  write_small_run();
  write("metrics.jsonl", progress(5, 5, 1, 500) + "{\"event\":\"result\"}\n" + progress(1, 1, 2.5, 100));
  const RunHistory run = read();
  ASSERT_EQ(run.loss.size(), 1u);
  EXPECT_EQ(run.loss[0].clock_s, 1);
  EXPECT_EQ(run.notes.size(), 1u);
}

TEST_F(RunHistoryTest, LinesOfOtherNodesAddWorkersButNoLoss) {
  write_small_run();
  auto other = nlohmann::json::parse(progress(2, 2, 9, 70));
  other["node"] = 1;
  other["workers"][0]["rank"] = 1;
  write("metrics.jsonl", progress(1, 1, 2.5, 100) + json_text(other) + "\n" + progress(2, 2, 2, 200));
  const RunHistory run = read();
  ASSERT_EQ(run.loss.size(), 2u);
  EXPECT_EQ(run.loss[1].samples, 270);
  EXPECT_EQ(run.staleness, (std::vector<std::int64_t>{4, 2}));
}

TEST_F(RunHistoryTest, WhoLeftIsNoted) {
  write_small_run();
  write("metrics.jsonl", progress(1, 1, 2, 1) + R"({"event":"left","worker":1,"text":"killed by SIGKILL"})" + "\n");
  EXPECT_EQ(read().notes, std::vector<std::string>{"worker 1 left: killed by SIGKILL"});
}

TEST_F(RunHistoryTest, WhoCameAndWentIsToldWithWhenAndWhatItTook) {
  write_small_run();
  write("metrics.jsonl", progress(1, 1, 2, 1) +
                             R"({"event":"left","worker":1,"returns":true,"text":"killed"})"
                             "\n" +
                             progress(2, 2, 2, 1) +
                             R"({"event":"returned","worker":1,"after_s":0.5,"text":"is back"})"
                             "\n"
                             R"({"event":"left","worker":0,"ended":true,"text":"late"})"
                             "\n");
  const auto views = read().views;
  ASSERT_EQ(views.size(), 2u);
  EXPECT_EQ(views[0].event, "left");
  EXPECT_EQ(views[0].text, "killed");
  EXPECT_EQ(views[0].clock_s, 1);
  EXPECT_FALSE(views[0].took_s);
  EXPECT_EQ(views[1].update, 2);
  EXPECT_EQ(views[1].took_s, 0.5);
}

TEST_F(RunHistoryTest, ADamagedConfigurationIsNotedAndNotNeeded) {
  write_small_run();
  write("configuration.json", "{\"options\": {");
  const RunHistory run = read();
  EXPECT_EQ(run.loss.size(), 2u);
  EXPECT_EQ(run.notes.size(), 1u);
}

TEST_F(RunHistoryTest, WhatIsNoRunIsRefusedByName) {
  EXPECT_EQ(error().kind, ErrorKind::invalid);
  EXPECT_NE(error().text.find(folder), std::string::npos);
  EXPECT_NE(error().text.find("neither configuration.json nor metrics.jsonl"), std::string::npos);
  EXPECT_EQ(read_run(folder + "/nowhere").error().kind, ErrorKind::not_found);
  write("file", "");
  EXPECT_EQ(read_run(folder + "/file").error().kind, ErrorKind::invalid);
}

TEST_F(RunHistoryTest, TheNewestIsTheOneThatWasBegunLast) {
  EXPECT_EQ(newest_run(folder, Replays::count), "");
  const auto begun = [this](const std::string& name, int hour, const char* options) {
    std::filesystem::create_directories(folder + "/" + name);
    write(name + "/configuration.json", options);
    std::filesystem::last_write_time(folder + "/" + name + "/configuration.json",
                                     std::filesystem::file_time_type::clock::now() + std::chrono::hours(hour));
  };
  begun("my-own-name", 1, "{}");
  begun("2026-01-01-both/2-wagma", 2, "{}");
  begun("2026-01-01-replay", 3, R"({"options": {"replay": "my-own-name"}})");
  std::filesystem::create_directories(folder + "/notes");
  EXPECT_EQ(newest_run(folder, Replays::count), folder + "/2026-01-01-replay");
  EXPECT_EQ(newest_run(folder, Replays::do_not_count), folder + "/2026-01-01-both/2-wagma");
}

TEST_F(RunHistoryTest, ARunWithoutAnyFigureIsRefused) {
  write_small_run();
  write("metrics.jsonl", "{\"event\":\"memory\"}\n");
  EXPECT_NE(error().text.find("has no figures"), std::string::npos);
}

TEST_F(RunHistoryTest, MetricsThatCannotBeReadAreAnError) {
  std::filesystem::create_directory(folder + "/metrics.jsonl");
  EXPECT_EQ(error().kind, ErrorKind::invalid);
  EXPECT_NE(error().text.find("metrics.jsonl is no regular file"), std::string::npos) << error().text;
}

}  // namespace
}  // namespace paceline::recorded
