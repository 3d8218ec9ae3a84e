#include "algorithms/simulate/fit.h"

#include <gmock/gmock.h>

namespace paceline::simulate {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

/// Workers that take the same time at each step, and averages that cost `average_s`.
Measured steady(const std::string& strategy, const std::vector<double>& times, double average_s,
                std::int64_t steps = 10) {
  Measured run{.strategy = strategy, .steps = steps, .workers = {}};
  const double slowest = *std::max_element(times.begin(), times.end());
  for (double time : times) {
    auto& worker = run.workers.emplace_back();
    for (std::int64_t step = 0; step < steps; ++step)
      worker.steps.push_back({.step = step, .compute_s = time, .answered_s = slowest - time + average_s});
    worker.batches_done = static_cast<double>(steps);
  }
  return run;
}

Fit fitted(const Measured& run) {
  auto made = fit(run);
  EXPECT_TRUE(made) << made.error().text;
  return made ? std::move(*made) : Fit{};
}

double simulated_s(const Fit& fit, const WhatIf& what) {
  const auto job = job_of(fit, what);
  EXPECT_TRUE(job) << job.error().text;
  const auto outcome = job ? simulate(*job) : tl::unexpected(job.error());
  EXPECT_TRUE(outcome) << outcome.error().text;
  return outcome ? seconds(outcome->summary.time) : 0;
}

std::string why_not(const Measured& run) {
  const auto made = fit(run);
  return made ? "" : made.error().text;
}

TEST(FitTest, AnAverageCostsWhatTheLastToComeWaited) {
  const Fit fit = fitted(steady("allreduce", {1, 2, 1, 4}, 0.5));
  EXPECT_DOUBLE_EQ(fit.exchange_s, 0.25) << "four workers exchange twice";
  EXPECT_NEAR(simulated_s(fit, {.strategy = "allreduce", .workers = 4, .steps = 10}), 10 * 4.5, 1e-6);
}

TEST(FitTest, WhereNothingIsAveragedNothingIsPaid) {
  Measured run = steady("local-sgd(period=5)", {1, 2, 1, 4}, 0.5);
  const Fit fit = fitted(run);
  EXPECT_NEAR(simulated_s(fit, {.strategy = run.strategy, .workers = 4, .steps = 10}), 10 * 4 + 2 * 0.5, 1e-6);
}

TEST(FitTest, AStepTakesTheTimeThatItTook) {
  Measured run = steady("allreduce", {1, 1}, 0);
  run.workers[0].steps[3].compute_s = 7;
  run.workers[1].steps[6].compute_s = 5;
  EXPECT_NEAR(simulated_s(fitted(run), {.strategy = "allreduce", .workers = 2, .steps = 10}), 8 + 7 + 5, 1e-6);
}

TEST(FitTest, WhatWasNotMeasuredIsDrawn) {
  Measured run = steady("allreduce", {1, 2}, 0);
  run.workers[1].steps.resize(4);
  const auto job = job_of(fitted(run), {.strategy = "allreduce", .workers = 4, .steps = 12});
  ASSERT_TRUE(job);
  EXPECT_THAT(job->compute_s, Each(ElementsAre(1, 2, 1, 2))) << "worker 2 is like 0, worker 3 like 1";
}

TEST(FitTest, AMendedWorkerIsLikeTheMedianOfTheOthers) {
  const auto job = job_of(fitted(steady("allreduce", {1, 2, 3, 9}, 0)),
                          {.strategy = "allreduce", .workers = 4, .steps = 3, .mended = Rank{3}});
  ASSERT_TRUE(job);
  EXPECT_THAT(job->compute_s, Each(ElementsAre(1, 2, 3, 2)));
}

TEST(FitTest, AnAbandonedStepTakesATimeThatIsLonger) {
  Measured run = steady("nonblocking(batches=1)", {1, 1}, 0, 100);
  for (std::int64_t step = 0; step < 100; ++step) {
    auto& at = run.workers[1].steps[static_cast<std::size_t>(step)];
    at.abandoned = step % 2 == 0;
    at.compute_s = at.abandoned ? 1 : 3;
  }
  EXPECT_THAT(fitted(run).workers[1].of_step, Each(3)) << "it finished later than after 1 s whenever it finished";
}

TEST(FitTest, WhoNeverFinishesAStepIsKnownByItsMiniBatches) {
  Measured run = steady("nonblocking(batches=8)", {8, 8}, 0);
  run.batches = 8;
  run.workers[0].batches_done = 80;
  for (auto& step : run.workers[1].steps) step.abandoned = true;
  run.workers[1].batches_done = 35;  // 3.5 a step: of 8 s each, with one more half done.
  const Fit fit = fitted(run);
  EXPECT_THAT(fit.workers[1].of_step, Each(DoubleNear(16, 1e-9)));
  EXPECT_TRUE(fit.guessed.empty());
  EXPECT_NEAR(simulated_s(fit, {.strategy = run.strategy, .workers = 2, .steps = 10}), 80, 1e-6);
  EXPECT_NEAR(simulated_s(fit, {.strategy = "allreduce", .workers = 2, .steps = 10}), 160, 1e-6);
}

TEST(FitTest, WhoNeverFinishesAMiniBatchIsSaidToBeGuessed) {
  Measured run = steady("nonblocking(batches=1)", {1, 1}, 0);
  for (auto& step : run.workers[1].steps) step.abandoned = true;
  run.workers[1].batches_done = 0;
  EXPECT_THAT(fitted(run).guessed, ElementsAre(Rank{1}));
}

TEST(FitTest, SaysWhatCannotBeFitted) {
  EXPECT_THAT(why_not(steady("adacomm", {1, 1}, 0)), HasSubstr("loss"));
  EXPECT_THAT(why_not(steady("allreduce", {1, 1}, 0, 0)), HasSubstr("no steps"));
  Measured run = steady("allreduce", {1, 1}, 0);
  run.workers[1].steps.clear();
  EXPECT_THAT(why_not(run), HasSubstr("worker 1"));
}

TEST(FitTest, ATraceThatWasCutOffIsNoRun) {
  Measured run = steady("allreduce", {1, 1}, 0, 100);
  for (auto& worker : run.workers) worker.steps.resize(90);
  EXPECT_EQ(why_not(run), "");
  for (auto& worker : run.workers) worker.steps.resize(89);
  EXPECT_THAT(why_not(run), HasSubstr("ends at step 89 of 100"));
}

TEST(FitTest, SaysWhatCannotBeAsked) {
  const Fit fit = fitted(steady("allreduce", {1, 2}, 0));
  const auto why = [&](const WhatIf& what) {
    const auto job = job_of(fit, what);
    return job ? "" : job.error().text;
  };
  EXPECT_THAT(why({.strategy = "allreduce", .workers = 2, .mended = Rank{2}}), HasSubstr("0 to 1"));
  EXPECT_THAT(why({.strategy = "adacomm", .workers = 2}), HasSubstr("loss"));
  EXPECT_THAT(why({.strategy = "wagma(group=4)", .workers = 2}), HasSubstr("group"));
}

}  // namespace
}  // namespace paceline::simulate
