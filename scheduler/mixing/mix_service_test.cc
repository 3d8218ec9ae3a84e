#include "scheduler/mixing/mix_service.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <latch>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// The shell with windows and without sockets. Models are so large that they are averaged on the pool: an averaging ends
// while others wait for their turn.

namespace paceline::scheduler {
namespace {

constexpr std::uint64_t kElements = collective::Averager::kInlineBytes / sizeof(double) + 1;

/// Everybody alone.
class NobodyMixes : public MixPlan {
 public:
  std::vector<Share> row(Rank to, Version) const override { return {{to, 1}}; }
  std::vector<Rank> receivers(Rank, Version) const override { return {}; }
};

class MixServiceTest : public ::testing::Test {
 protected:
  MixServiceTest() {
    MixService::Options options;
    options.job.node_of = {NodeId{0}, NodeId{0}};
    options.job.self = NodeId{0};
    options.job.last = Version{9};
    options.job.evaluates = true;
    options.job.evaluate_every = 1;
    options.plan = std::make_shared<NobodyMixes>();
    const auto send = [](NodeId, wire::Message&, const auto&) { FAIL() << "there is one node"; };
    service_ = std::make_shared<MixService>(options, graph_, *averager_, send);
    for (const int rank : {0, 1}) join(rank);
  }

  void join(int rank) {
    auto window = memory::Window::create({.elements = kElements, .dtype = memory::Dtype::f64, .buffers = 4});
    auto control = memory::ControlPage::create();
    ASSERT_TRUE(window && control);
    ASSERT_TRUE(service_->join(Rank{rank}, std::move(*window), std::move(*control)));
    publish(rank, -1, 0);
    end_averagings();
  }
  memory::Window& window(int rank) { return *service_->window(Rank{rank}); }
  std::span<double> numbers(int rank, memory::Buffer buffer) {
    return {reinterpret_cast<double*>(window(rank).data(buffer).data()), kElements};
  }

  void publish(int rank, std::int64_t t, double model) {
    const auto buffer = window(rank).writing();
    ASSERT_TRUE(buffer);
    std::ranges::fill(numbers(rank, *buffer), model);
    window(rank).tag(*buffer) = {.iteration = t, .bodies = 1, .samples = 1};
    ASSERT_TRUE(window(rank).publish(t < 0));
    service_->on_arrival(Rank{rank}, Version{t}, std::chrono::seconds(1), now);
  }
  /// Until the pool is idle.
  void end_averagings() {
    for (pollfd ready{averager_->descriptor(), POLLIN, 0}; ::poll(&ready, 1, 100) > 0;)
      for (const auto id : averager_->completed()) service_->on_reduced(id, now);
  }
  /// Versions whose mean was given to somebody for evaluation.
  std::vector<std::int64_t> evaluations() {
    std::vector<std::int64_t> versions;
    for (const auto& event : service_->take_events()) {
      if (const auto* failed = std::get_if<MixService::Failed>(&event)) ADD_FAILURE() << failed->text;
      const auto* executed = std::get_if<MixService::Executed>(&event);
      if (executed != nullptr && executed->evaluate) versions.push_back(executed->version.value);
    }
    return versions;
  }

  Instant now{};
  TaskGraph graph_{{}};
  std::unique_ptr<collective::Averager> averager_ = std::move(*collective::Averager::create(1));
  std::shared_ptr<MixService> service_;
};

// The mean of version 0 is due when worker 1 has mixed it; by then the mixing of worker 0, who is to evaluate it, is
// next in the queue. A window has one result in progress.
TEST_F(MixServiceTest, AnEvaluationsMeanIsMadeWhenTheMixingBeforeItIsDelivered) {
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
TEST_F(MixServiceTest, AJobThatIsLetGoKeepsItsMemoryUntilItsAveragingIsDoneAndLeavesTheGraph) {
  std::latch may_go_on(1);
  float number = 1;
  collective::Reduction first{.inputs = {&number}, .outputs = {{&number, 1}}, .elements = 1};
  first.then = [&](std::uint64_t, std::uint64_t) { may_go_on.wait(); };
  ASSERT_TRUE(averager_->submit(0, first, std::make_shared<int>()));
  publish(0, 0, 2);
  publish(1, 0, 6);
  service_->end_work();
  EXPECT_EQ(graph_.size(), 0u);
  const std::weak_ptr<MixService> job = std::exchange(service_, nullptr);
  may_go_on.count_down();
  std::size_t done = 0;
  for (pollfd ready{averager_->descriptor(), POLLIN, 0}; done < 2 && ::poll(&ready, 1, 10'000) > 0;)
    done += averager_->completed().size();
  EXPECT_EQ(done, 2u);
  EXPECT_TRUE(job.expired());
}

}  // namespace
}  // namespace paceline::scheduler
