#include "scheduler/asynchronous/pair_coordinator.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "scheduler/shell/averaging_service_test_support.h"

namespace paceline::scheduler {
namespace {

class PairCoordinatorTest : public ServiceTest {
 protected:
  PairCoordinatorTest() {
    const PairCoordinator::Partner the_other = [](Rank rank, Version) { return std::optional(Rank{1 - rank.value}); };
    begin(service<PairCoordinator>(two_workers(), nowhere(), the_other));
  }
  /// Evaluations are over at once.
  void train(int rank, std::int64_t t) {
    publish(rank, t, 1);
    end_averagings();
    for (const auto& each : told_ = executed())
      if (each.evaluate) service_->release(each.version);
  }

  std::vector<AveragingService::Executed> told_;  ///< In the last iteration.
};

// Workers end apart: the last iteration of all, which begins the mean of the end, is the one with which the workers
// have done so many on average that an evaluation was due, had it not been the last.
TEST_F(PairCoordinatorTest, AnEvaluationThatFallsDueWithTheLastIterationOfAStopGivesWayToTheEnd) {
  for (std::int64_t t = 0; t < 5; ++t) train(0, t);
  train(1, 0);
  service_->stop_soon();
  train(0, 5);
  ASSERT_TRUE(told_.empty() || !told_.back().over);
  train(1, 1);  // The eighth: all have done four.
  ASSERT_FALSE(told_.empty());
  EXPECT_TRUE(told_.back().over);
  EXPECT_EQ(told_.back().version, Version{5});
  for (std::size_t i = 0; i + 1 < told_.size(); ++i) EXPECT_FALSE(told_[i].evaluate) << to_string(told_[i].version);
}

/// Evaluations count how far all are on average, the end how far those are that are left.
TEST_F(PairCoordinatorTest, AllAreHeldAtTheEndThoughALaterEvaluationWasReleased) {
  for (std::int64_t t = 0; t < 8; ++t) train(0, t);
  train(1, 0);
  ASSERT_TRUE(service_->released());
  const Version released = *service_->released();
  service_->on_gone(Rank{0}, now);
  service_->stop_soon();
  publish(1, 1, 1);
  end_averagings();
  told_ = executed();
  ASSERT_FALSE(told_.empty());
  ASSERT_TRUE(told_.back().over);
  const Version end = told_.back().version;
  ASSERT_LT(end, released);
  const auto& hold = service_->control(Rank{1})->words().hold;
  EXPECT_EQ(hold.load(), end.value);
  service_->release(released);
  EXPECT_EQ(hold.load(), end.value) << "it is not the end's";
  service_->release(end);
  EXPECT_EQ(hold.load(), -1);
}

TEST_F(PairCoordinatorTest, WhoComesBackGoesOnFromWhatItLoaded) {
  train(0, 0);
  EXPECT_FALSE(service_->is_free(Rank{1})) << "it is there";
  service_->on_gone(Rank{1}, now);
  train(0, 1);
  come_back(1, 3, 8);
  const auto begins = verdict(1);
  ASSERT_TRUE(begins);
  EXPECT_EQ(begins->next, 4);
  EXPECT_FALSE(begins->end);
  publish(1, 4, 10);  // A step of 2, when it has met worker 0, whose model is 1.
  end_averagings();
  EXPECT_EQ(numbers(1, *window(1).writing())[0], 4.5 + 2);
  publish(0, 2, 1);  // No step, when it has met worker 1.
  end_averagings();
  EXPECT_EQ(numbers(0, *window(0).writing())[0], (4.5 + 6.5) / 2);
}

TEST_F(PairCoordinatorTest, WhatComesLateOfAnEarlierProcessIsNotHeard) {
  service_->on_gone(Rank{1}, now);
  begin_return(1);
  service_->on_arrival(Rank{1}, Version{0}, {}, now);
  EXPECT_FALSE(verdict(1));
  publish(1, 5, 1, true);
  EXPECT_TRUE(verdict(1));
}

TEST_F(PairCoordinatorTest, NoIterationIsDoneTwice) {
  train(1, 0);
  train(1, 1);
  service_->on_gone(Rank{1}, now);
  EXPECT_EQ(service_->begins_with(Rank{1}), Version{2});
  for (std::int64_t t = 0; t < 4; ++t) train(0, t);
  EXPECT_EQ(service_->begins_with(Rank{1}), Version{4}) << "what all others have done is done";
}

/// It had not begun when the end was decided: it does nothing more, and asks for the model that the others ended with.
TEST_F(PairCoordinatorTest, WhoComesBackWhenTheEndIsDecidedEndsWithTheOthers) {
  train(0, 0);
  service_->on_gone(Rank{1}, now);
  service_->stop_soon();
  come_back(1, 0, 8);
  EXPECT_FALSE(verdict(1));
  train(0, 1);
  ASSERT_FALSE(told_.empty());
  EXPECT_TRUE(told_.back().over);
  const auto end = verdict(1);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->end);
  EXPECT_FALSE(end->fresh);
}

TEST_F(PairCoordinatorTest, WhoComesBackAfterTheEndHearsOfItAtOnce) {
  service_->on_gone(Rank{1}, now);
  for (std::int64_t t = 0; t < 10; ++t) train(0, t);
  EXPECT_TRUE(told_.back().over);
  come_back(1, 5, 1);
  const auto end = verdict(1);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->end);
  EXPECT_FALSE(end->fresh) << "it needs the model of the end";
  service_->on_gone(Rank{1}, now);
  end_averagings();
  come_back(1, 9, 1);
  const auto with_that = verdict(1);
  ASSERT_TRUE(with_that);
  EXPECT_TRUE(with_that->end && with_that->fresh) << "it has loaded it";
  EXPECT_EQ(service_->done(), Version{9});
}

TEST_F(PairCoordinatorTest, WhoDiesAgainBeforeItArrivesComesBackAgain) {
  service_->on_gone(Rank{1}, now);
  begin_return(1);
  service_->on_gone(Rank{1}, now);
  come_back(1, 2, 4);
  EXPECT_TRUE(verdict(1));
}

}  // namespace
}  // namespace paceline::scheduler
