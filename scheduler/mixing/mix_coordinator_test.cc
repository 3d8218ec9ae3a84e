#include "scheduler/mixing/mix_coordinator.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <latch>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/mixing/nobody_mixes_test_support.h"
#include "scheduler/shell/averaging_service_test_support.h"

namespace paceline::scheduler {
namespace {

class MixCoordinatorTest : public ServiceTest {
 protected:
  MixCoordinatorTest() {
    MixCoordinator::Options options;
    options.plan = std::make_shared<NobodyMixes>();
    begin(service<MixCoordinator>(two_workers(), nowhere(), options));
  }
};

// The mean of version 0 is due when worker 1 has mixed it; by then the mixing of worker 0, who is to evaluate it, is
// next in the queue. A window has one result in progress.
TEST_F(MixCoordinatorTest, AnEvaluationsMeanIsMadeWhenTheMixingBeforeItIsDelivered) {
  publish(0, 0, 2);
  end_averagings();
  publish(1, 0, 6);
  publish(0, 1, 3);
  end_averagings();
  EXPECT_EQ(evaluations(), (std::vector<std::int64_t>{0}));
  ASSERT_TRUE(window(0).writing() && window(0).latest());
  EXPECT_EQ(numbers(0, *window(0).writing())[0], 3);
  EXPECT_EQ(numbers(0, *window(0).latest())[kElements - 1], (2 + 6) / 2.);
}

// The driver was killed, say: nobody waits for what the pool is doing.
TEST_F(MixCoordinatorTest, AJobThatIsLetGoKeepsItsMemoryUntilItsAveragingIsDoneAndLeavesTheGraph) {
  std::latch may_go_on(1);
  float number = 1;
  collective::Reduction first{.inputs = {&number}, .outputs = {{&number, 1}}, .elements = 1};
  first.then = [&](std::uint64_t, std::uint64_t) { may_go_on.wait(); };
  ASSERT_TRUE(averager_->submit(0, first, std::make_shared<int>()));
  publish(0, 0, 2);
  publish(1, 0, 6);
  service_->end_work();
  EXPECT_EQ(graph_.size(), 0u);
  const std::weak_ptr<AveragingService> job = std::exchange(service_, nullptr);
  may_go_on.count_down();
  std::size_t done = 0;
  for (pollfd ready{averager_->descriptor(), POLLIN, 0}; done < 2 && ::poll(&ready, 1, 10'000) > 0;)
    done += averager_->completed().size();
  EXPECT_EQ(done, 2u);
  EXPECT_TRUE(job.expired());
}

}  // namespace
}  // namespace paceline::scheduler
