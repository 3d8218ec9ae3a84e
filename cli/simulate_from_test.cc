#include "cli/simulate_from.h"

#include <gmock/gmock.h>

namespace paceline::cli {
namespace {

using recorded::Activity;
using testing::HasSubstr;

/// Two workers that made updates 10 and 11 after a resume; worker 1 was too late for update 11.
class MeasuredTest : public testing::Test {
 protected:
  MeasuredTest() {
    run.ended = true;
    run.options = {{"strategy", "nonblocking(batches=4)"}, {"workers", 2}};
    run.result = {{"updates", 12}, {"train_s", 5.0}, {"abandoned_batches", 2}};
    run.first_update = 10;
    run.samples = {{0, 80}, {1, 60}};
    trace.emplace();
    trace->tracks = {{"worker 0",
                      {{0, 2, Activity::compute, 10}, {2.25, 2.5, Activity::wait, 10}, {2.5, 5, Activity::compute, 11}},
                      0},
                     {"worker 1", {{0, 2, Activity::compute, 10}, {2, 3, Activity::abandoned, 11}}, 1},
                     {"node 0", {{2, 2.25, Activity::average, 10}}, -1}};
  }
  std::string why_not() const {
    const auto measured = measured_of(run, trace);
    return measured ? "" : measured.error().text;
  }

  recorded::RunHistory run;
  std::optional<recorded::RunTrace> trace;
};

TEST_F(MeasuredTest, StepsAreCountedFromTheFirstUpdateOfTheRun) {
  const auto measured = measured_of(run, trace);
  ASSERT_TRUE(measured) << measured.error().text;
  EXPECT_EQ(measured->steps, 2);
  EXPECT_EQ(measured->batches, 4);
  ASSERT_EQ(measured->workers.size(), 2u);
  const auto& steps = measured->workers[0].steps;
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].step, 0);
  EXPECT_EQ(steps[0].compute_s, 2);
  EXPECT_EQ(steps[0].answered_s, 0.5) << "from the end of its computing on";
  EXPECT_EQ(steps[1].answered_s, std::nullopt);
  EXPECT_TRUE(measured->workers[1].steps[1].abandoned);
}

TEST_F(MeasuredTest, WorkersShareTheMiniBatchesLikeTheSamples) {
  const auto measured = measured_of(run, trace);
  ASSERT_TRUE(measured) << measured.error().text;
  EXPECT_DOUBLE_EQ(measured->workers[0].batches_done, 8);
  EXPECT_DOUBLE_EQ(measured->workers[1].batches_done, 6);
}

TEST_F(MeasuredTest, ARunMustHaveEndedWithAllItsWorkers) {
  run.result["left"] = {1};
  EXPECT_THAT(why_not(), HasSubstr("workers left"));
  run.ended = false;
  run.outcome = "no result: it still runs";
  EXPECT_THAT(why_not(), HasSubstr("it still runs"));
}

TEST_F(MeasuredTest, ARunMustHaveStepsAndATrace) {
  trace.reset();
  EXPECT_THAT(why_not(), HasSubstr("trace.json"));
  run.result["updates"] = 10;
  EXPECT_THAT(why_not(), HasSubstr("no steps"));
}

}  // namespace
}  // namespace paceline::cli
