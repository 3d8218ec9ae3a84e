#include "algorithms/job/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/json.h"

namespace paceline::job {
namespace {

using nlohmann::json;

std::string refused(const json& options) {
  const auto checked = check_options(options);
  return checked ? "" : checked.error().text;
}

TEST(OptionsTest, AnOrdinaryJobIsTaken) {
  EXPECT_EQ(refused(json::object()), "");
  EXPECT_EQ(refused({{"workers", 4},
                     {"strategy", "wagma(group=2)"},
                     {"epochs", 0.5},
                     {"batch", 32},
                     {"seed", 7U},
                     {"target", nullptr},
                     {"metric", {{"name", "perplexity"}, {"direction", "minimise"}, {"unit", ""}}},
                     {"optimizer_state", ""},
                     {"buffers", "keep"},
                     {"json", true},
                     {"node_of", {0, 1}}}),
            "");
}

TEST(OptionsTest, WhatAScriptAsksForIsReadAsItWasSaid) {
  RunOptions asked{.workers = 3,
                   .strategy = "wagma(group=2)",
                   .epochs = 0.5,
                   .batch = 16,
                   .accumulate = 2,
                   .samples = 100,
                   .evaluate_every_epochs = 0,
                   .checkpoint_every_s = 2,
                   .optimizer_state = "reset",
                   .buffers = "keep",
                   .metric = {"loss", minimise, "nats"},
                   .target = 0.5,
                   .early_stopping = 4,
                   .keep_checkpoints = 5,
                   .seed = 18446744073709551615U,
                   .resume = "runs/1"};
  const auto read = read_options(to_json(asked));
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->seed, asked.seed);
  EXPECT_EQ(read->metric, asked.metric);
  EXPECT_EQ(to_json(*read), to_json(asked));
  asked.target = {};
  EXPECT_EQ(read_options(to_json(asked)).value().target, std::nullopt);
  EXPECT_EQ(to_json(asked).size(), 20U);
}

TEST(OptionsTest, DefaultsFitAndWhatIsNotSaidHasThem) {
  const auto read = read_options(to_json(RunOptions{}));
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->start_limit_s, 600);
  EXPECT_EQ(read->lost, "ok");
  EXPECT_EQ(read->name(), "allreduce");
}

TEST(OptionsTest, FlagsAreCalledAsTheOptionsWithoutTheirUnit) {
  EXPECT_EQ(flag_of("keep_checkpoints"), "--keep-checkpoints");
  EXPECT_EQ(flag_of("patience_s"), "--patience");
  std::string without;
  for (const Option& option : all_options())
    if (option.help.empty()) without += std::string(option.name) + " ";
  EXPECT_EQ(without, "samples metric json run_directory label replay replay_build program node_of vacant ");
}

TEST(OptionsTest, AChoiceIsAWholeWordOfThem) {
  for (const char* const word : {"keep", "reset", "average", ""}) EXPECT_EQ(unfit("optimizer_state", word), "") << word;
  for (const char* const word : {"kee", "eset", "or", "keep,", "keep, reset", "average "})
    EXPECT_EQ(unfit("optimizer_state", word), "give keep, reset or average") << word;
  EXPECT_EQ(unfit("lost", ""), "give ok or fail");
}

TEST(OptionsTest, OtherNamesAreTheProgramsOwn) { EXPECT_EQ(refused({{"elements", "many"}}), ""); }

TEST(OptionsTest, ValuesBeyondTheirRangeAreRefusedByName) {
  EXPECT_EQ(refused({{"workers", 2'000'000'000}}), "option workers = 2000000000: give a number from 1 to 4096");
  EXPECT_EQ(refused({{"workers", 0}}), "option workers = 0: give a number from 1 to 4096");
  EXPECT_EQ(refused({{"epochs", 1e18}}), "option epochs = 1e+18: give a number above 0, at most 1000000");
  EXPECT_EQ(refused({{"epochs", 0}}), "option epochs = 0: give a number above 0, at most 1000000");
  EXPECT_EQ(refused({{"buffers", "reset"}}), "option buffers = reset: give average or keep");
  EXPECT_EQ(refused({{"seed", -1}}), "option seed = -1: give a whole number from 0");
  EXPECT_NE(refused({{"node_of", {0, -1}}}), "");
}

TEST(OptionsTest, SoAreNumbersThatAreNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(refused({{"target", nan}}), "option target = nan: give a finite number, or none");
  EXPECT_EQ(refused({{"target", -infinity}}), "option target = -inf: give a finite number, or none");
  for (const char* const option :
       {"epochs", "evaluate_every_epochs", "checkpoint_every_s", "time_limit_s", "patience_s"})
    for (const double value : {nan, infinity, -1.0}) EXPECT_NE(refused({{option, value}}), "") << option << value;
}

TEST(OptionsTest, SoAreValuesOfAnotherKind) {
  EXPECT_EQ(refused({{"workers", "4"}}), "option workers = 4: give a number from 1 to 4096");
  for (const char* const option : {"workers", "epochs", "strategy", "seed", "slow", "metric", "target", "json",
                                   "node_of", "time_limit_s", "optimizer_state"})
    EXPECT_NE(refused({{option, {{"a", 1}}}}), "") << option;
}

TEST(OptionsTest, SoAreTextsThatAreNoUtf8OrTooLong) {
  EXPECT_NE(refused({{"strategy", "all\xff"}}), "");
  EXPECT_NE(refused({{"metric", {{"name", "a\xff"}}}}), "");
  EXPECT_NE(refused({{"label", "\x1b[2J"}}), "");
  const auto words = refused({{"strategy", std::string(1 << 20, 'a')}});
  EXPECT_NE(words, "");
  EXPECT_LT(words.size(), 300U) << "a message shows the beginning";
}

TEST(OptionsTest, FlagsNameWorkersThatThereAre) {
  EXPECT_EQ(refused({{"workers", 4}, {"slow", "3:3x,0:2x"}, {"straggle", "4:3ms"}, {"minimum", 4}}), "");
  EXPECT_EQ(refused({{"workers", 4}, {"slow", "1:2x,9:3x"}}), "--slow 9:3x: workers are numbered 0 to 3");
  EXPECT_EQ(refused({{"workers", 4}, {"straggle", "9:3ms"}}), "--straggle 9:3ms: there are only 4 workers");
  EXPECT_EQ(refused({{"workers", 4}, {"minimum", 9}}), "--minimum 9: there are only 4 workers");
  EXPECT_EQ(refused({{"workers", 4}, {"elastic", false}, {"begin_with", 4}}), "");
  EXPECT_EQ(refused({{"workers", 4}, {"elastic", false}, {"begin_with", -1}}),
            "--elastic no: then all 4 workers begin: give --workers one number, and --begin-with none");
  EXPECT_EQ(refused({{"slow", "9:3x"}, {"minimum", 9}}), "") << "how many there are is said elsewhere";
}

TEST(OptionsTest, AFractionIsNoPercentage) {
  EXPECT_EQ(refused({{"target", 88}}), "target 88: accuracy is a fraction: give one such as 0.88, or 88%");
  EXPECT_EQ(refused({{"target", 88}, {"metric", {{"name", "score"}}}}), "");
}

}  // namespace
}  // namespace paceline::job
