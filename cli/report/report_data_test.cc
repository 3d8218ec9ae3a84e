#include "cli/report/report_data.h"

#include <gtest/gtest.h>

#include "cli/recorded/recorded_test_support.h"
#include "cli/report/page.h"

namespace paceline::report {
namespace {

class ReportDataTest : public recorded::RunDirectoryTest {
 protected:
  LoadedRun load() const {
    auto runs = load_runs(folder);
    EXPECT_TRUE(runs) << runs.error().text;
    return runs ? std::move(runs->at(0)) : LoadedRun{};
  }
};

TEST_F(ReportDataTest, ASmallRunIsThereAsAWhole) {
  write_small_run();
  const auto data = report_data({load()});
  const auto& run = data["runs"][0];
  EXPECT_EQ(run["name"], "wagma");
  EXPECT_EQ(json_text(run["loss"]), R"({"clock_s":[1.0,2.0],"samples":[100,200],"value":[2.5,2.0]})");
  EXPECT_EQ(json_text(run["evaluations"]), R"({"clock_s":[1.5],"samples":[150],"value":[0.6]})");
  EXPECT_EQ(json_text(run["staleness"]), "[2,1]");
  EXPECT_EQ(json_text(run["logged"]), "{}");
  EXPECT_TRUE(run["timeline"].is_null());
  EXPECT_EQ(json_text(run["notes"]), R"(["there is no trace, so no timeline"])");
}

TEST_F(ReportDataTest, RunsOfOneStrategyAreToldApart) {
  write_small_run();
  const auto data = report_data({load(), load()});
  const std::string first = data["runs"][0]["name"];
  EXPECT_EQ(first, "wagma (" + std::filesystem::path(folder).filename().string() + ")");
  EXPECT_EQ(data["runs"][1]["name"], first + " #2");
}

TEST_F(ReportDataTest, TheDirectoryOfAComparisonStandsForItsRuns) {
  for (const std::string name : {"10-c", "2-b", "1-a"}) {
    std::filesystem::create_directory(folder + "/" + name);
    write(name + "/metrics.jsonl", progress(1, 1, 2, 1));
  }
  const auto runs = load_runs(folder + "/");
  ASSERT_TRUE(runs) << runs.error().text;
  const auto data = report_data(*runs);
  ASSERT_EQ(data["runs"].size(), 3u);
  EXPECT_EQ(data["runs"][0]["name"], "1-a");
  EXPECT_EQ(data["runs"][2]["name"], "10-c");
}

TEST_F(ReportDataTest, AHundredThousandLinesMakeASmallPageThatSaysSo) {
  write_small_run();
  std::string lines;
  for (int k = 1; k <= 100'000; ++k) lines += progress(k, k / 100.0, 2.0 + k % 11, 10 * k);
  write("metrics.jsonl", lines);
  const auto data = report_data({load()});
  EXPECT_LE(data["runs"][0]["loss"]["value"].size(), 1000u);
  EXPECT_NE(json_text(data["runs"][0]["notes"]).find("of 100000 points"), std::string::npos)
      << data["runs"][0]["notes"];
  EXPECT_LT(page(data).size(), 1'000'000u);
}

TEST_F(ReportDataTest, OfManyWhoCameAndWentTheFirstAndTheLastAreShown) {
  write_small_run();
  LoadedRun run = load();
  for (int k = 0; k < 500; ++k)
    run.history.views.push_back({k * 1.0, k, "left", "worker " + std::to_string(k) + " left", std::nullopt});
  const auto data = report_data({run});
  const auto& views = data["runs"][0]["views"];
  ASSERT_EQ(views.size(), 200u);
  EXPECT_EQ(views[99]["update"], 99);
  EXPECT_EQ(views[100]["update"], 400);
  EXPECT_TRUE(views[199]["took_s"].is_null());
  EXPECT_NE(json_text(data["runs"][0]["notes"]).find("of 500 times"), std::string::npos) << data["runs"][0]["notes"];
}

TEST_F(ReportDataTest, ManyRunsStillMakeASmallPage) {
  write_small_run();
  LoadedRun run = load();
  recorded::RunTrace trace;
  for (int worker = 0; worker < 16; ++worker) {
    trace.tracks.push_back({"worker " + std::to_string(worker), {}});
    for (int k = 0; k < 500; ++k)
      trace.tracks.back().spans.push_back({k + 0.1234567, k + 0.7654321, recorded::Activity::compute});
  }
  trace.duration_s = 500;
  run.trace = trace;
  for (int k = 0; k < 5000; ++k) run.history.loss.push_back({k * 1.2345678, k * 1000.0, 1.0 / (k + 1)});
  EXPECT_LT(page(report_data(std::vector<LoadedRun>(kRunsMax, run))).size(), 2'000'000u);
}

}  // namespace
}  // namespace paceline::report
