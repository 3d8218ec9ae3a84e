#include "cli/run_options.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

/// What `paceline run WORDS...` plans.
Result<std::vector<PlannedRun>> planned(std::vector<std::string> words, RunFlags* parsed = nullptr) {
  CommandLine line("run", "");
  RunFlags flags;
  add_run_flags(line.flags(), flags);
  std::vector<const char*> argv = {"run"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  if (const auto status = line.parse(static_cast<int>(argv.size()), argv.data()))
    return fail(ErrorKind::invalid, "exit status " + std::to_string(*status));
  if (parsed) *parsed = flags;
  return plan_runs(flags);
}

std::string error_of(std::vector<std::string> words) {
  const auto runs = planned(std::move(words));
  return runs ? "no error" : runs.error().text;
}

TEST(RunOptionsTest, WhatIsNotGivenIsLeftToTheScript) {
  const auto runs = planned({"x.cpp"});
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 1u);
  EXPECT_EQ(runs->front().overrides, nlohmann::json::object());
}

TEST(RunOptionsTest, FlagsOverrideTheScript) {
  const auto runs = planned({"x.cpp",
                             "--workers",
                             "4",
                             "--strategy",
                             "wagma(sync=5)",
                             "--epochs",
                             "0.5",
                             "--target",
                             "88%",
                             "--early-stopping",
                             "5",
                             "--keep-checkpoints",
                             "3",
                             "--seed",
                             "7",
                             "--slow",
                             "3:4x",
                             "--slow",
                             "0:2",
                             "--straggle",
                             "1:40ms",
                             "--optimizer-state",
                             "average",
                             "--buffers",
                             "keep",
                             "--accumulate",
                             "2",
                             "--patience",
                             "30s",
                             "--start-limit",
                             "1m",
                             "--checkpoint-every",
                             "10m",
                             "--lost",
                             "fail",
                             "--minimum",
                             "3",
                             "--time-limit",
                             "2m",
                             "--json"});
  ASSERT_TRUE(runs) << runs.error().text;
  const nlohmann::json expected = {{"workers", 4},
                                   {"strategy", "wagma(sync=5)"},
                                   {"epochs", 0.5},
                                   {"target", 0.88},
                                   {"early_stopping", 5},
                                   {"keep_checkpoints", 3},
                                   {"seed", 7},
                                   {"slow", "3:4x,0:2"},
                                   {"json", true},
                                   {"straggle", "1:40ms"},
                                   {"optimizer_state", "average"},
                                   {"buffers", "keep"},
                                   {"accumulate", 2},
                                   {"patience_s", 30.0},
                                   {"start_limit_s", 60.0},
                                   {"checkpoint_every_s", 600.0},
                                   {"lost", "fail"},
                                   {"minimum", 3},
                                   {"time_limit_s", 120.0},
                                   {"label", "wagma(sync=5)"}};
  EXPECT_EQ(runs->front().overrides, expected);
}

TEST(RunOptionsTest, WhatFollowsTwoDashesGoesToTheScript) {
  RunFlags flags;
  ASSERT_TRUE(planned({"x.cpp", "--workers", "2", "--", "--workers", "9", "a"}, &flags));
  EXPECT_EQ(flags.script_args, (std::vector<std::string>{"--workers", "9", "a"}));
  EXPECT_EQ(flags.given.at("workers").once, "2");
}

TEST(RunOptionsTest, SourcesStandBehindTheScriptAndArgumentsBehindThem) {
  RunFlags flags;
  ASSERT_TRUE(planned({"x.cpp", "/a/b.cpp", "/c.cc", "3", "late.cpp", "-I", "/inc", "-I/more", "--slow", "0:2x", "-l",
                       "m", "-l", "/x/libz.so", "-L", "/lib", "--", "--hidden", "5"},
                      &flags));
  const Script script = script_of(flags);
  EXPECT_EQ(script.path, "x.cpp");
  EXPECT_EQ(script.parts, (ScriptParts{{"/a/b.cpp", "/c.cc"}, {"/inc", "/more"}, {"/lib"}, {"m", "/x/libz.so"}}));
  EXPECT_EQ(arguments_of(flags), (std::vector<std::string>{"3", "late.cpp", "--hidden", "5"}));
}

TEST(RunOptionsTest, AFlagThatMayBeRepeatedTakesOneValueAtATime) {
  RunFlags flags;
  ASSERT_TRUE(planned({"x.cpp", "--slow", "0:2x", "argument"}, &flags));
  EXPECT_EQ(flags.given.at("slow").each, std::vector<std::string>{"0:2x"});
  EXPECT_EQ(arguments_of(flags), std::vector<std::string>{"argument"});
}

TEST(RunOptionsTest, FlagsAmongAProgramsOwnArgumentsAreFound) {
  const auto options =
      options_among({"data.csv", "--hidden", "64", "--workers", "3", "-s", "5", "--strategy=wagma(group=1)",
                     "--verbose", "--seed", "7", "--help", "--", "--workers", "9"});
  ASSERT_TRUE(options) << options.error().text;
  EXPECT_EQ(*options,
            (nlohmann::json{{"workers", 3}, {"strategy", "wagma(group=1)"}, {"label", "wagma(group=1)"}, {"seed", 7}}));
  EXPECT_EQ(options_among({"--hidden", "64"}).value(), nlohmann::json::object());
  EXPECT_TRUE(options_among({"--run-dir", "x"}).value()["run_directory"].get<std::string>().ends_with("/x"));
  for (const auto& wrong : std::vector<std::vector<std::string>>{
           {"--workers", "many"}, {"--workers", "0"}, {"--compare", "allreduce"}, {"--nodes", "2"}, {"--workers"}}) {
    const auto refused = options_among(wrong);
    ASSERT_FALSE(refused) << wrong.front();
    EXPECT_NE(refused.error().text.find(wrong.front()), std::string::npos) << refused.error().text;
    EXPECT_NE(refused.error().text.find("what follows -- is the program's own"), std::string::npos);
  }
}

TEST(RunOptionsTest, AFlagThatIsCloseToOneOfOursIsSaidToBe) {
  EXPECT_EQ(options_among({"--stratgy=allreduce", "--epoch", "3", "--hidden", "64", "--", "--worker"}).value(),
            (nlohmann::json{{"misspelt", {{"--stratgy", "--strategy"}, {"--epoch", "--epochs"}}}}));
}

TEST(RunOptionsTest, AComparisonSaysWhatItChanges) {
  const auto said = [](const std::vector<std::string>& words) {
    RunFlags flags;
    const auto runs = planned(words, &flags);
    return runs ? changed_by_comparison(flags, *runs) : runs.error().text;
  };
  EXPECT_NE(said({"x.cpp", "--compare", "allreduce,nonblocking(batches=6)"}).find("takes 6 mini-batches"),
            std::string::npos);
  EXPECT_EQ(said({"x.cpp", "--accumulate", "6", "--compare", "allreduce,nonblocking"}), "");
  EXPECT_EQ(said({"x.cpp", "--compare", "allreduce,wagma", "--workers", "4"}), "");
  EXPECT_EQ(said({"x.cpp", "--strategy", "nonblocking"}), "");
}

TEST(RunOptionsTest, AComparisonIsMadeAtEqualSamplesAnUpdate) {
  const auto runs =
      planned({"x.cpp", "--workers", "4", "--compare", "allreduce,nonblocking(batches=6),wagma(late=skip)"});
  ASSERT_TRUE(runs) << runs.error().text;
  ASSERT_EQ(runs->size(), 3u);
  EXPECT_EQ((*runs)[0].overrides["accumulate"], 6);
  EXPECT_FALSE((*runs)[1].overrides.contains("accumulate"));
  EXPECT_EQ((*runs)[2].overrides["accumulate"], 6);
  EXPECT_EQ((*runs)[2].label, "wagma(late=skip)");
}

TEST(RunOptionsTest, NonblockingGetsTheAccumulatedNumber) {
  const auto runs = planned(
      {"x.cpp", "--workers", "4", "--accumulate", "5", "--compare", "allreduce,nonblocking,nonblocking(allreduce)"});
  ASSERT_TRUE(runs) << runs.error().text;
  EXPECT_EQ((*runs)[0].overrides["accumulate"], 5);
  EXPECT_EQ((*runs)[1].overrides["strategy"], "nonblocking(batches=5)");
  EXPECT_EQ((*runs)[2].overrides["strategy"], "nonblocking(allreduce,batches=5)");
}

TEST(RunOptionsTest, UnequalBatchesAreNotCompared) {
  EXPECT_NE(error_of({"x.cpp", "--compare", "nonblocking(batches=2),nonblocking(batches=4)"})
                .find("nonblocking(batches=4) has 4 mini-batches an update but nonblocking(batches=2) has 2: runs are "
                      "compared at equal samples"),
            std::string::npos);
  EXPECT_NE(error_of({"x.cpp", "--accumulate", "3", "--compare", "nonblocking(batches=2)"}).find("--accumulate 3"),
            std::string::npos);
}

TEST(RunOptionsTest, WithoutNonblockingNothingIsAccumulated) {
  const auto runs = planned({"x.cpp", "--workers", "4", "--compare", "allreduce, wagma"});
  ASSERT_TRUE(runs) << runs.error().text;
  EXPECT_FALSE((*runs)[0].overrides.contains("accumulate"));
  EXPECT_EQ((*runs)[1].label, "wagma");
}

TEST(RunOptionsTest, ErrorsNameTheFlagAndItsRange) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--workers", "0"}, "--workers 0: give a number from 1"},
      {{"--nodes", "65"}, "--nodes 65: give a number from 1 to 64"},
      {{"--accumulate", "-1"}, "--accumulate -1"},
      {{"--epochs", "0"}, "--epochs"},
      {{"--target", "high"}, "--target high"},
      {{"--early-stopping", "0"}, "--early-stopping 0: give a number from 1"},
      {{"--keep-checkpoints", "0"}, "--keep-checkpoints 0: give a number from 1"},
      {{"--target", "120%"}, "--target 120%"},
      {{"--slow", "3"}, "--slow 3: give worker:factor"},
      {{"--slow", "3:0.5x"}, "--slow 3:0.5x"},
      {{"--slow", "3:4x,"}, "--slow"},
      {{"--workers", "2", "--slow", "2:4x"}, "numbered 0 to 1"},
      {{"--straggle", "1:40"}, "--straggle 1:40: give count:delay"},
      {{"--workers", "2", "--straggle", "3:40ms"}, "only 2 workers"},
      {{"--time-limit", "soon"}, "--time-limit soon"},
      {{"--patience", "never"}, "--patience never"},
      {{"--start-limit", "0"}, "--start-limit 0"},
      {{"--lost", "maybe"}, "--lost maybe"},
      {{"--minimum", "0"}, "--minimum 0"},
      {{"--compare", "a,,b"}, "missing"},
      {{"--compare", "allreduce nonblocking"}, "a comma separates strategies"},
      {{"--compare", "wagma(sync=3) nonblocking"}, "a comma separates strategies"},
      {{"--workers", "4", "--minimum", "9"}, "--minimum 9: there are only 4 workers"},
      {{"--compare", "wagma(sync=3"}, "parentheses"},
      {{"--compare", "a)b("}, "parentheses"},
      {{"--compare", "allreduce", "--strategy", "wagma"}, "exclude each other"},
      {{"--compare", "allreduce", "--resume", "r"}, "exclude each other"},
      {{"--workers", "4", "--strategy", "wagmaa"}, "wagmaa"},
  };
  for (const auto& [words, text] : cases) {
    std::vector<std::string> all = {"x.cpp"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_NE(error_of(all).find(text), std::string::npos) << text << " not in: " << error_of(all);
  }
}

TEST(RunOptionsTest, TimesHaveUnits) {
  EXPECT_EQ(parse_seconds("90").value(), 90);
  EXPECT_EQ(parse_seconds("1.5h").value(), 5400);
  for (const char* text : {"", "s", "-1s", "1d", "inf", "1 m"}) EXPECT_FALSE(parse_seconds(text)) << text;
}

}  // namespace
}  // namespace paceline::cli
