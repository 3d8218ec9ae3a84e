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

}  // namespace
}  // namespace paceline::scheduler
