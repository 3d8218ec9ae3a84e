#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/shell/averaging_service.h"

namespace paceline::scheduler {

/// Shells with windows and without sockets, of the two workers of one node. Models are so large that they are averaged
/// on the pool: an averaging ends while others wait for their turn.
class ServiceTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kElements = collective::Averager::kInlineBytes / sizeof(double) + 1;

  static JobOptions two_workers() {
    JobOptions job;
    job.node_of = {NodeId{0}, NodeId{0}};
    job.self = NodeId{0};
    job.last = Version{9};
    job.evaluates = true;
    job.evaluate_every = 1;
    return job;
  }
  static SendToNode nowhere() {
    return [](NodeId, wire::Message&, const auto&) { FAIL() << "there is one node"; };
  }

  /// `args`: what the coordinator needs besides its workplace.
  template <class T, class... Args>
  std::shared_ptr<AveragingService> service(JobOptions job, SendToNode send, const Args&... args) {
    const auto make = [&](Workplace& work) { return std::make_unique<T>(work, args...); };
    return std::make_shared<AveragingService>(std::move(job), make, graph_, *averager_, std::move(send));
  }
  void begin(std::shared_ptr<AveragingService> service) {
    service_ = std::move(service);
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

  void publish(int rank, std::int64_t t, double model) { publish(rank, t, model, t < 0); }
  void publish(int rank, std::int64_t t, double model, bool is_start) {
    const auto buffer = window(rank).writing();
    ASSERT_TRUE(buffer);
    std::ranges::fill(numbers(rank, *buffer), model);
    window(rank).tag(*buffer) = {.iteration = t, .bodies = 1, .samples = 1};
    ASSERT_TRUE(window(rank).publish(is_start));
    service_->on_arrival(Rank{rank}, Version{t}, std::chrono::seconds(1), now);
  }
  /// A worker that had left has another process, which begins after t with this model.
  void come_back(int rank, std::int64_t t, double model) {
    begin_return(rank);
    publish(rank, t, model, true);
    end_averagings();
  }
  void begin_return(int rank) {
    ASSERT_TRUE(service_->is_free(Rank{rank}));
    service_->reopen(Rank{rank}, std::move(*memory::ControlPage::create()));
    heard_[rank] = 0;
    service_->on_return(Rank{rank}, now);
  }
  /// What it was told last, if that is news.
  std::optional<memory::WorkerVerdict> verdict(int rank) {
    const auto answer = service_->control(Rank{rank})->verdict(heard_[rank]);
    if (!answer) return std::nullopt;
    heard_[rank] = answer->number;
    return answer->verdict;
  }
  /// Until the pool is idle.
  void end_averagings() {
    for (pollfd ready{averager_->descriptor(), POLLIN, 0}; ::poll(&ready, 1, 100) > 0;)
      for (const auto id : averager_->completed()) service_->on_reduced(id, now);
  }
  /// What the job's owner was told since it was last asked.
  std::vector<AveragingService::Executed> executed() {
    std::vector<AveragingService::Executed> all;
    for (const auto& event : service_->take_events()) {
      if (const auto* failed = std::get_if<AveragingService::Failed>(&event)) ADD_FAILURE() << failed->text;
      if (const auto* told = std::get_if<AveragingService::Executed>(&event)) all.push_back(*told);
    }
    return all;
  }
  /// Versions whose mean was given to somebody for evaluation.
  std::vector<std::int64_t> evaluations() {
    std::vector<std::int64_t> versions;
    for (const auto& each : executed())
      if (each.evaluate) versions.push_back(each.version.value);
    return versions;
  }

  Instant now{};
  std::map<int, std::uint64_t> heard_;
  TaskGraph graph_{{}};
  std::unique_ptr<collective::Averager> averager_ = std::move(*collective::Averager::create(1));
  std::shared_ptr<AveragingService> service_;
};

}  // namespace paceline::scheduler
