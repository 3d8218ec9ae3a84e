#include "algorithms/job/job_record.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::job {
namespace {

using nlohmann::json;

json progress(int node, double clock, std::int64_t update, std::int64_t samples) {
  return {
      {"event", "progress"},
      {"node", node},
      {"clock_s", clock},
      {"update", update},
      {"step_s", 0.5},
      {"counters", {{"group_averages", 3}, {"global_averages", 2}, {"skipped", 1}, {"abandoned_bodies", 4}}},
      {"workers",
       json::array({{{"rank", node}, {"step", update}, {"samples", samples}, {"wait_s", 1.5}, {"state", "compute"}}})}};
}

class JobRecordTest : public ::testing::Test {
 protected:
  JobRecord sut{"wagma", 2, 2, 0.9};
};

TEST_F(JobRecordTest, FiguresOfAllNodesAreAddedUp) {
  sut.on_event(progress(0, 2.0, 10, 100));
  sut.on_event(progress(1, 2.0, 10, 60));
  const auto result = sut.result();
  EXPECT_EQ(result["samples"], 160);
  EXPECT_DOUBLE_EQ(result["samples_per_s"], 80);
  EXPECT_DOUBLE_EQ(result["wait_s"], 3.0);
  EXPECT_EQ(result["group_averages"], 6);
  EXPECT_EQ(result["global_averages"], 2) << "a global averaging is one, on however many nodes it is counted";
  EXPECT_EQ(result["skipped_steps"], 2);
  EXPECT_EQ(result["abandoned_batches"], 8);
  EXPECT_DOUBLE_EQ(result["samples_per_update"], 16);
}

TEST_F(JobRecordTest, LossesAreKeptOnceAnUpdateAsTheFirstNodeTellsThem) {
  const auto told = [&](int node, double clock, std::int64_t update, double loss) {
    auto event = progress(node, clock, update, 0);
    event["loss"] = loss;
    sut.on_event(event);
  };
  told(0, 0.1, 0, 0);  // Nothing is done yet.
  told(0, 1.0, 3, 2.5);
  told(1, 1.1, 4, 9.0);
  told(0, 1.2, 3, 2.5);
  told(0, 2.0, 7, 1.5);
  ASSERT_EQ(sut.losses().size(), 2U);
  EXPECT_EQ(sut.losses()[0].update, 3);
  EXPECT_DOUBLE_EQ(sut.losses()[1].clock_s, 2.0);
  EXPECT_DOUBLE_EQ(sut.losses()[1].value, 1.5);
}

TEST_F(JobRecordTest, TheTargetIsReachedAtTheFirstEvaluationThatMeetsIt) {
  EXPECT_TRUE(sut.result()["time_to_target_s"].is_null());
  sut.on_event({{"event", "evaluated"}, {"update", 5}, {"clock_s", 1.0}, {"value", 0.8}});
  EXPECT_TRUE(sut.result()["time_to_target_s"].is_null());
  sut.on_event({{"event", "evaluated"}, {"update", 10}, {"clock_s", 2.0}, {"value", 0.9}});
  sut.on_event({{"event", "evaluated"}, {"update", 12}, {"clock_s", 2.5}, {"value", nullptr}});  // No metric.
  sut.on_event({{"event", "evaluated"}, {"update", 15}, {"clock_s", 3.0}, {"value", 0.95}});
  EXPECT_DOUBLE_EQ(sut.result()["time_to_target_s"], 2.0);
  EXPECT_DOUBLE_EQ(sut.result()["test_accuracy"], 0.95);
}

TEST_F(JobRecordTest, TheJobIsClosedOnceEveryNodeSaidSo) {
  auto last = progress(0, 2.0, 10, 100);
  last["event"] = "closed";
  sut.on_event(last);
  EXPECT_FALSE(sut.closed());
  last["node"] = 1;
  sut.on_event(last);
  EXPECT_TRUE(sut.closed());
}

TEST_F(JobRecordTest, TheFirstFailureIsKept) {
  EXPECT_FALSE(sut.failure());
  sut.on_event({{"event", "failed"}, {"text", "loss is nan"}});
  sut.on_event({{"event", "failed"}, {"text", "something that followed"}});
  EXPECT_EQ(sut.result()["failure"], "loss is nan");
}

TEST_F(JobRecordTest, AWorkerThatLeftStaysLeft) {
  sut.on_event({{"event", "left"}, {"worker", 1}, {"text", "gone"}});
  sut.on_event(progress(1, 1.0, 3, 10));
  EXPECT_TRUE(sut.left(1));
  EXPECT_TRUE(sut.workers().at(1).left);
}

}  // namespace
}  // namespace paceline::job
