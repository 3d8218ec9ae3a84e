#include "algorithms/cluster/training/job_plan.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"
#include "runtime/base/test_directory.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;

JobSettings settings(const job::Options& options = {}) {
  JobSettings settings{JobId{3}, NodeId{1}, {}, {}};
  settings.entry.options = options;
  settings.entry.node_of = {NodeId{0}, NodeId{1}};
  settings.strategy = job_strategy(options, 2).value();
  return settings;
}

TEST(JobPlanTest, AJobThatEndsWhereItBeginsIsRefused) {
  EXPECT_EQ(checked_plan({2, 9, 3}).value().updates, 9);
  for (const auto& [first, updates] : {std::pair{5, 5}, {5, 4}, {-1, 5}, {0, 0}}) {
    const auto plan = checked_plan({first, updates, 0});
    ASSERT_FALSE(plan) << first;
    EXPECT_NE(plan.error().text.find("give more --epochs"), std::string::npos);
  }
}

TEST(JobPlanTest, TheStrategysPatienceCountsBeforeTheJobs) {
  job::Options options;
  options.patience_s = 30;
  EXPECT_EQ(averaging_options(settings(), {0, 8, 4})->wait_limit, std::nullopt);
  auto asked = settings(options);
  EXPECT_EQ(averaging_options(asked, {0, 8, 4})->wait_limit, std::chrono::seconds(30));
  asked.strategy.patience = std::chrono::seconds(2);
  EXPECT_EQ(averaging_options(asked, {0, 8, 4})->wait_limit, std::chrono::seconds(2));
}

TEST(JobPlanTest, EvaluationsAreNeverAtTheEndOrSoOften) {
  EXPECT_FALSE(averaging_options(settings(), {0, 8, -1})->evaluates);
  EXPECT_TRUE(averaging_options(settings(), {0, 8, 0})->evaluates);
  EXPECT_EQ(averaging_options(settings(), {0, 8, 0})->evaluate_every, 0);
  EXPECT_EQ(averaging_options(settings(), {0, 8, 4})->evaluate_every, 4);
  EXPECT_EQ(averaging_options(settings(), {2, 8, 4})->last, Version{7});
}

TEST(JobPlanTest, ARecordOfAnotherJobIsNotReplayed) {
  const test::TestDirectory directory;
  job::Options options;
  options.replay = directory.path.string();
  EXPECT_FALSE(averaging_options(settings(options), {0, 8, 4})) << "there is none";
  const auto head = averaging_options(settings(), {0, 8, 4})->record_head;
  auto writer = scheduler::RecordWriter::create(scheduler::record_path(directory.path.string(), NodeId{1}), head);
  ASSERT_TRUE(writer) << writer.error().text;
  writer->finish();
  const auto same = averaging_options(settings(options), {0, 8, 4});
  ASSERT_TRUE(same) << same.error().text;
  EXPECT_TRUE(same->replay.has_value());
  const auto longer = averaging_options(settings(options), {0, 9, 4});
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().text, "this is another job than the recorded one: updates was 8, is 9");
}

}  // namespace
}  // namespace paceline::cluster
