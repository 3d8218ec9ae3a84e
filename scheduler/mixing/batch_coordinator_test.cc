#include "scheduler/mixing/batch_coordinator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "scheduler/mixing/nobody_mixes_test_support.h"
#include "scheduler/shell/averaging_service_test_support.h"

namespace paceline::scheduler {
namespace {

using std::chrono::seconds;

/// All weigh their steps by what all have done, and what is under way at the signal counts.
class BatchCoordinatorTest : public ServiceTest {
 protected:
  BatchCoordinatorTest() {
    BatchCoordinator::Options options;
    options.plan = std::make_shared<NobodyMixes>();
    options.stands_in = true;
    const auto job = two_workers();
    const BatchEngine::Options batches{job.self, job.node_of, 2, false, BatchEngine::Weight::of_all};
    begin(service<BatchCoordinator>(job, nowhere(), options, batches));
  }
  std::optional<Rank> left() {
    std::optional<Rank> left;
    for (const auto& event : service_->take_events())
      if (const auto* one = std::get_if<AveragingService::Left>(&event)) left = one->rank;
    return left;
  }
};

// Nobody waits for a mixing yet: no neighbour would complain.
TEST_F(BatchCoordinatorTest, WhoFreezesInAMiniBatchIsNotWaitedForForEver) {
  service_->on_batch(Rank{0}, Version{0}, 2, seconds(1), now);
  EXPECT_EQ(left(), std::nullopt);
  const auto deadline = service_->next_deadline();
  ASSERT_TRUE(deadline);
  service_->tick(*deadline - seconds(1));
  EXPECT_EQ(left(), std::nullopt);
  service_->tick(*deadline);
  EXPECT_EQ(left(), Rank{1});
  const auto told = service_->control(Rank{0})->verdict(0);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->verdict.next, 0) << "it may step";
  EXPECT_EQ(told->verdict.scale, 1) << "P over all mini-batches that were done";
}

TEST_F(BatchCoordinatorTest, WhoIsSlowAndGivesSignsOfLifeIsWaitedFor) {
  service_->on_batch(Rank{0}, Version{0}, 2, seconds(1), now);
  const auto deadline = service_->next_deadline();
  ASSERT_TRUE(deadline);
  service_->on_alive(Rank{1}, *deadline - seconds(1));
  service_->tick(*deadline);
  EXPECT_EQ(left(), std::nullopt);
  EXPECT_GT(service_->next_deadline(), deadline);
}

}  // namespace
}  // namespace paceline::scheduler
