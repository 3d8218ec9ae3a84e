#include "scheduler/shell/averagings.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <latch>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace paceline::scheduler {
namespace {

using Averager = collective::Averager;
using Model = std::vector<float>;

/// A job that has averagings, and is owned by whoever reduces for it.
struct Job : std::enable_shared_from_this<Job> {
  Job(TaskGraph& graph, Averager& averager)
      : averagings(
            JobId{1}, graph, averager, machine_clock(),
            {[this] { return shared_from_this(); }, [this](const Decision& told) { return told.kind == may_finish; },
             [](const std::string& text) { ADD_FAILURE() << text; }}) {}

  Decision::Kind may_finish = Decision::Kind::executed;
  Averagings averagings;
};

class AveragingsTest : public ::testing::Test {
 protected:
  static collective::Reduction small(float& number) {
    return {.inputs = {&number}, .outputs = {{&number, 2}}, .elements = 1};
  }
  void until_idle() {
    for (pollfd ready{averager_->descriptor(), POLLIN, 0}; ::poll(&ready, 1, 100) > 0;)
      for (const auto id : averager_->completed()) completed_.push_back(id);
  }

  TaskGraph graph_{{}};
  std::unique_ptr<Averager> averager_ = std::move(*Averager::create(1));
  std::shared_ptr<Job> job_ = std::make_shared<Job>(graph_, *averager_);
  std::vector<std::uint64_t> completed_;
};

TEST_F(AveragingsTest, OneBeginsWhenTheOneBeforeItHasDelivered) {
  float number = 1;
  std::string order;
  for (const char* name : {"a", "b"})
    job_->averagings.add({[&, name] {
                            order += std::string("prepare ") + name + ", ";
                            return small(number);
                          },
                          [&, name](Instant) { order += std::string("finish ") + name + ", "; }},
                         {});
  job_->averagings.start({});
  EXPECT_EQ(order, "prepare a, finish a, prepare b, finish b, ");
  EXPECT_EQ(number, 4);
}

TEST_F(AveragingsTest, OneThatHasNotItsTurnWaitsReduced) {
  float number = 1;
  bool finished = false;
  job_->averagings.add(
      {[&] { return small(number); }, [&](Instant) { finished = true; }, Decision{.kind = Decision::Kind::merged}}, {});
  job_->averagings.start({});
  EXPECT_EQ(number, 2);
  EXPECT_FALSE(finished);
  EXPECT_FALSE(job_->averagings.finish_what_waited({}));
  job_->may_finish = Decision::Kind::merged;
  EXPECT_TRUE(job_->averagings.finish_what_waited({}));
  EXPECT_TRUE(finished);
  EXPECT_FALSE(job_->averagings.finish_what_waited({})) << "there is none any more";
}

TEST_F(AveragingsTest, OneWaitsForWhatIsComputedForIt) {
  float number = 1;
  job_->averagings.begin_compute(Rank{0});
  job_->averagings.end_compute(Rank{0});
  job_->averagings.add({[&] { return small(number); }, [](Instant) {}}, {Rank{0}});
  job_->averagings.start({});
  EXPECT_EQ(number, 2);
}

// The job is closed; what only the averaging holds, such as sums that are on their way, stays.
TEST_F(AveragingsTest, WhatIsBeingReducedStaysUntilItIsDone) {
  auto numbers = std::make_shared<Model>(Averager::kInlineBytes / sizeof(float) + 1, 1.F);
  const std::weak_ptr<Model> watched = numbers;
  std::latch may_go_on(1);
  auto prepare = [numbers, &may_go_on] {
    collective::Reduction reduction{
        .inputs = {numbers->data()}, .outputs = {{numbers->data(), 1}}, .elements = numbers->size()};
    reduction.then = [&may_go_on](std::uint64_t, std::uint64_t) { may_go_on.wait(); };
    return reduction;
  };
  job_->averagings.add({std::move(prepare), [numbers](Instant) { ADD_FAILURE() << "nothing follows"; }}, {});
  job_->averagings.add({[numbers] { return collective::Reduction{}; }, [](Instant) {}}, {});
  job_->averagings.start({});
  numbers.reset();
  job_->averagings.leave();
  EXPECT_EQ(graph_.size(), 0u);
  const std::weak_ptr<Job> job = std::exchange(job_, nullptr);
  EXPECT_FALSE(watched.expired());
  may_go_on.count_down();
  until_idle();
  EXPECT_EQ(completed_.size(), 1u);
  EXPECT_TRUE(job.expired());
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace paceline::scheduler
