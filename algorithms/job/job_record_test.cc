#include "algorithms/job/job_record.h"

#include <gtest/gtest.h>

#include <cmath>

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
  static Options options() {
    Options options;
    options.strategy = "wagma";
    options.target = 0.9;
    return options;
  }
  JobRecord sut{options(), {0, 1}};
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

TEST_F(JobRecordTest, ALossThatIsNoNumberIsOneOfTheFigures) {
  for (const json& loss : {json(0.5), json(nullptr)}) {
    auto event = progress(0, 2.0, loss.is_null() ? 20 : 10, 100);
    event["loss"] = loss;
    sut.on_event(event);
  }
  EXPECT_TRUE(std::isnan(sut.loss()));
  sut.on_event({{"event", "evaluated"}, {"update", 20}, {"clock_s", 2.0}, {"value", 0.4}, {"loss", nullptr}});
  ASSERT_EQ(sut.evaluations().size(), 1U);
  EXPECT_TRUE(std::isnan(sut.evaluations()[0].loss));
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

TEST_F(JobRecordTest, WhatWorkersLogIsTheMeanOfTheirLastValues) {
  const auto log = [&](int worker, const char* name, json value) {
    sut.on_event({{"event", "metric"}, {"worker", worker}, {"name", name}, {"value", value}});
  };
  log(0, "entropy", 1.0);
  log(1, "entropy", 2.0);
  log(0, "entropy", 3.0);
  log(1, "none", nullptr);
  log(1, "a", 5.0);
  EXPECT_EQ(sut.logged(), (std::vector<std::pair<std::string, double>>{{"entropy", 2.5}, {"a", 5.0}}));
  EXPECT_EQ(sut.result()["logged"], (json{{"entropy", 2.5}, {"a", 5.0}}));
  for (int i = 0; i < 2000; ++i) log(0, ("many" + std::to_string(i)).c_str(), 1);
  EXPECT_EQ(sut.logged().size(), 1000U);
}

TEST_F(JobRecordTest, WhatIsBestAndReachedIsTheMetricsToSay) {
  Options options;
  options.strategy = "wagma";
  options.target = 35;
  options.metric = {"perplexity", minimise};
  JobRecord record(options, {0, 1});
  EXPECT_TRUE(record.result()["metric"]["value"].is_null());
  for (const auto& [update, value] : {std::pair{5, 40.0}, {10, 34.0}, {15, 38.0}})
    record.on_event({{"event", "evaluated"}, {"update", update}, {"clock_s", update}, {"value", value}});
  const auto result = record.result();
  EXPECT_EQ(result["metric"], (json{{"name", "perplexity"},
                                    {"direction", "minimise"},
                                    {"unit", ""},
                                    {"value", 38.0},
                                    {"best", 34.0},
                                    {"best_update", 10}}));
  EXPECT_DOUBLE_EQ(result["time_to_target_s"], 10.0);
  EXPECT_FALSE(result.contains("test_accuracy"));
}

TEST_F(JobRecordTest, TheJobIsClosedOnceEveryNodeSaidSo) {
  auto last = progress(0, 2.0, 10, 100);
  last["event"] = "closed";
  sut.on_event(last);
  EXPECT_FALSE(sut.closed());
  auto other = sut;
  last["node"] = 1;
  sut.on_event(last);
  EXPECT_TRUE(sut.closed());
  other.on_event({{"event", "node_lost"}, {"node", 1}});
  EXPECT_TRUE(other.closed()) << "it says nothing any more";
}

TEST_F(JobRecordTest, WhatALostNodeSaysLaterIsNoPartOfTheResult) {
  sut.on_event({{"event", "left"}, {"worker", 1}, {"text", "gone"}});
  sut.on_event({{"event", "node_lost"}, {"node", 1}});
  auto later = progress(0, 9.0, 99, 100);
  later["node"] = 1;
  sut.on_event(later);
  for (const int rank : {0, 1}) sut.on_event({{"event", "final"}, {"worker", rank}, {"model", "abc"}});
  EXPECT_NE(sut.update(), 99);
  EXPECT_EQ(sut.result()["models"], (json{{"0", "abc"}}));
}

TEST_F(JobRecordTest, ANodeThatIsBackCountsAnewAndIsClosedAnew) {
  auto last = progress(0, 2.0, 10, 0);
  last["event"] = "closed";
  sut.on_event(last);
  auto one = progress(1, 2.0, 10, 100);
  sut.on_event(one);
  const auto before = sut.samples();
  sut.on_event({{"event", "left"}, {"worker", 1}, {"text", "gone"}});
  sut.on_event({{"event", "node_lost"}, {"node", 1}});
  sut.on_event({{"event", "node_joined"}, {"node", 1}, {"leg", 1}, {"places", {1}}});
  EXPECT_FALSE(sut.closed());
  sut.on_event({{"event", "returned"}, {"worker", 1}});
  EXPECT_EQ(sut.samples(), before);
  one = progress(1, 3.0, 20, 100);
  sut.on_event(one);
  EXPECT_EQ(sut.samples(), 2 * before);
  EXPECT_EQ(sut.update(), 20);
  EXPECT_FALSE(sut.result().contains("lost"));
}

TEST_F(JobRecordTest, APlaceThatIsAnotherNodesNowCountsOnThereAndThatNodeIsClosed) {
  auto old = progress(1, 2.0, 10, 100);
  sut.on_event(old);
  const auto before = sut.samples();
  auto early = progress(1, 2.0, 10, 0);
  early["node"] = 2;
  sut.on_event(early);
  EXPECT_EQ(sut.samples(), before) << "it is not its place yet";
  sut.on_event({{"event", "node_joined"}, {"node", 2}, {"leg", 1}, {"places", {1}}});
  sut.on_event(old);
  EXPECT_EQ(sut.samples(), before) << "the old one knows it late";
  auto now = progress(1, 3.0, 20, 100);
  now["node"] = 2;
  sut.on_event(now);
  EXPECT_EQ(sut.samples(), 2 * before);
  for (const int node : {0, 1, 2}) {
    EXPECT_FALSE(sut.closed());
    sut.on_event({{"event", "closed"}, {"node", node}});
  }
  EXPECT_TRUE(sut.closed());
}

TEST_F(JobRecordTest, WhatBecameOfTheSamplesIsAPartOfTheResult) {
  EXPECT_FALSE(sut.result().contains("ledger"));
  const json epoch{{"epoch", 0}, {"committed", 12}, {"skipped", 8}, {"samples", 20}, {"tail", 0}};
  sut.on_event({{"event", "progress"}, {"node", 0}, {"ledger", {{"node", 0}, {"epochs", {epoch}}}}});
  EXPECT_EQ(sut.result().at("ledger").at(0).at("skipped"), 8);
}

TEST_F(JobRecordTest, ChangesOfTheStrategyAreAPartOfTheResult) {
  EXPECT_FALSE(sut.result().contains("changes"));
  sut.on_event({{"event", "changed"}, {"update", 40}, {"strategy", "sgp"}, {"after_s", 0.25}, {"text", "on with sgp"}});
  EXPECT_EQ(sut.result().at("changes"),
            json::array({{{"update", 40}, {"strategy", "sgp"}, {"lr_factor", 1.0}, {"after_s", 0.25}}}));
  EXPECT_EQ(sut.changed_to(), "sgp");
}

TEST_F(JobRecordTest, TheFirstFailureIsKept) {
  EXPECT_FALSE(sut.failure());
  sut.on_event({{"event", "failed"}, {"text", "loss is nan"}});
  sut.on_event({{"event", "failed"}, {"text", "something that followed"}});
  EXPECT_EQ(sut.result()["failure"], "loss is nan");
}

TEST_F(JobRecordTest, AWorkerThatComesBackIsNotLost) {
  sut.on_event({{"event", "left"}, {"worker", 1}, {"returns", true}, {"text", "killed"}});
  EXPECT_TRUE(sut.left(1) && sut.is_away(1) && sut.lost().empty());
  sut.on_event({{"event", "returned"}, {"worker", 1}, {"update", 7}, {"after_s", 0.1}});
  EXPECT_FALSE(sut.left(1) || sut.is_away(1) || sut.workers().at(1).left);
  sut.on_event({{"event", "left"}, {"worker", 1}, {"returns", true}, {"text", "killed"}});
  auto gone = sut;
  gone.on_event({{"event", "left"}, {"worker", 1}, {"returns", false}, {"text", "killed once too often"}});
  EXPECT_EQ(gone.lost(), std::set<std::int32_t>{1});
  EXPECT_FALSE(gone.is_away(1));
  sut.conclude();
  EXPECT_EQ(sut.result()["lost"], json({1})) << "it was on its way when all was over";
  EXPECT_EQ(sut.result()["returned"], (json{{"1", 1}}));
}

TEST_F(JobRecordTest, AWorkerThatLeftStaysLeft) {
  sut.on_event({{"event", "left"}, {"worker", 1}, {"text", "gone"}});
  sut.on_event(progress(1, 1.0, 3, 10));
  EXPECT_TRUE(sut.left(1));
  EXPECT_TRUE(sut.workers().at(1).left);
}

}  // namespace
}  // namespace paceline::job
