#include "algorithms/cluster/training/job_evaluation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "runtime/base/test_directory.h"

namespace paceline::cluster {
namespace {

constexpr Instant kStart = Instant(std::chrono::seconds(100));

job::Options with_target(double target) {
  job::Options options;
  options.target = target;
  return options;
}

TEST(JobEvaluationTest, AValueIsToldAndKeptForPeople) {
  JobEvaluation sut(with_target(0.9));
  EXPECT_TRUE(sut.newest().is_null());
  sut.begin(Version{9}, Rank{1}, kStart);
  EXPECT_EQ(sut.version(), Version{9});
  EXPECT_TRUE(sut.is_by(Rank{1}));
  const auto outcome = sut.on_value(0.5, {2.0, 640, 1.25});
  EXPECT_EQ(outcome.evaluated.update, 10) << "updates done";
  EXPECT_EQ(outcome.evaluated.figures.samples, 640);
  EXPECT_TRUE(outcome.evaluated.best);
  EXPECT_FALSE(outcome.evaluated.reached);
  EXPECT_FALSE(outcome.trouble);
  EXPECT_EQ(outcome.stop, "");
  EXPECT_EQ(sut.newest()["value"], 0.5);
  sut.end();
  EXPECT_EQ(sut.version(), std::nullopt);
  EXPECT_FALSE(sut.is_by(Rank{1}));
}

TEST(JobEvaluationTest, AtTheTargetTheJobIsToEnd) {
  JobEvaluation sut(with_target(0.9));
  sut.begin(Version{9}, Rank{0}, kStart);
  EXPECT_NE(sut.on_value(0.95, {}).stop, "");
}

TEST(JobEvaluationTest, WhatOneElsewhereHasLedToIsKnownHereToo) {
  JobEvaluation there(with_target(0.9)), sut(with_target(0.9));
  EXPECT_EQ(sut.newest_outcome(), nullptr);
  there.begin(Version{9}, Rank{1}, kStart);
  (void)there.on_value(0.95, {2.0, 640, 1.25});
  sut.on_value_elsewhere(there.newest_outcome()->evaluated);
  ASSERT_NE(sut.newest_outcome(), nullptr);
  EXPECT_EQ(sut.newest_outcome()->evaluated.worker, Rank{1});
  EXPECT_EQ(sut.newest_outcome()->evaluated.update, 10);
  EXPECT_EQ(sut.newest_outcome()->evaluated.figures.samples, 640);
  EXPECT_EQ(sut.newest_outcome()->stop, there.newest_outcome()->stop);
  EXPECT_NE(sut.newest_outcome()->stop, "");
  sut.on_value_elsewhere({Rank{0}, 5, 0.1, {}, false, false});
  EXPECT_EQ(sut.newest_outcome()->evaluated.update, 10) << "the newest stays";
}

TEST(JobEvaluationTest, NoNumberIsNothingForPeople) {
  JobEvaluation sut({});
  sut.begin(Version{0}, Rank{0}, kStart);
  EXPECT_TRUE(std::isnan(sut.on_value(std::nan(""), {}).evaluated.value));
  EXPECT_TRUE(sut.newest().is_null());
}

TEST(JobEvaluationTest, AnEvaluatorIsLateAfterPatience) {
  JobEvaluation sut({});
  EXPECT_FALSE(sut.is_late(kStart));
  sut.begin(Version{0}, Rank{0}, kStart);
  EXPECT_FALSE(sut.is_late(kStart + JobEvaluation::kPatience / 2));
  EXPECT_TRUE(sut.is_late(kStart + JobEvaluation::kPatience));
  sut.end();
  EXPECT_FALSE(sut.is_late(kStart + JobEvaluation::kPatience));
}

class SavingTest : public ::testing::Test {
 protected:
  SavingTest() {
    job::Options options;
    options.run_directory = directory_.path.string();
    options.checkpoint_every_s = 10;
    sut.emplace(options);
  }
  void write_fresh(Rank rank) const {
    std::ofstream(observe::RunDirectory::at(directory_.path.string()).fresh_checkpoint(rank)) << "state";
  }
  bool has_checkpoint() const {
    return std::filesystem::exists(observe::RunDirectory::at(directory_.path.string()).checkpoint());
  }

  test::TestDirectory directory_;
  std::optional<JobEvaluation> sut;
};

TEST_F(SavingTest, ACheckpointIsDueSoLongAfterTheLastOneOrAnEvaluation) {
  using std::chrono::seconds;
  EXPECT_FALSE(JobEvaluation({}).wants_checkpoint(kStart)) << "with evaluations only";
  EXPECT_FALSE(sut->wants_checkpoint(kStart)) << "the job begins";
  EXPECT_FALSE(sut->wants_checkpoint(kStart + seconds(9)));
  EXPECT_TRUE(sut->wants_checkpoint(kStart + seconds(10)));
  sut->begin(Version{3}, Rank{0}, kStart + seconds(10));
  sut->end();
  EXPECT_FALSE(sut->wants_checkpoint(kStart + seconds(19)));
  EXPECT_TRUE(sut->wants_checkpoint(kStart + seconds(20)));
}

TEST_F(SavingTest, OneThatWasAskedIsNotAskedAgainBeforeItHasSaved) {
  sut->ask_to_save(Rank{1}, kStart);
  EXPECT_FALSE(sut->may_save(Rank{1}));
  EXPECT_TRUE(sut->may_save(Rank{0}));
  write_fresh(Rank{1});
  EXPECT_TRUE(sut->on_saved(Rank{1}, 4).value());
  EXPECT_TRUE(sut->may_save(Rank{1}));
  EXPECT_TRUE(has_checkpoint());
}

TEST_F(SavingTest, WhatIsSavedWhileAnEvaluationIsUnderWayOrByOneThatLeftIsDropped) {
  sut->ask_to_save(Rank{1}, kStart);
  write_fresh(Rank{1});
  sut->begin(Version{5}, Rank{0}, kStart);
  EXPECT_FALSE(sut->on_saved(Rank{1}, 4).value());
  EXPECT_FALSE(has_checkpoint());
  sut->ask_to_save(Rank{2}, kStart);
  write_fresh(Rank{2});
  sut->on_left(Rank{2});
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path.string()));
}

}  // namespace
}  // namespace paceline::cluster
