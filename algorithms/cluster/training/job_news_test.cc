#include "algorithms/cluster/training/job_news.h"

#include <gtest/gtest.h>

#include "algorithms/job/job_event_wire.h"
#include "runtime/base/json.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;

class JobNewsTest : public testing::Test {
 protected:
  json told() { return std::exchange(told_, {}); }

  json told_;
  JobNews sut_{NodeId{2}, 0, [this](const DriverEvents::Write& write) {
                 wire::Message message;
                 const auto event = message.root().initJobEvent();
                 write(event);
                 told_ = job::to_json(event.asReader());
               }};
};

TEST_F(JobNewsTest, EachIsTheEventOfThePage) {
  sut_.memory(100, 3);
  EXPECT_EQ(told(), (json{{"event", "memory"}, {"node", 2}, {"bytes_worker", 100.0}, {"bytes_node", 300.0}}));
  sut_.started(4, 9);
  EXPECT_EQ(told(), (json{{"event", "started"}, {"node", 2}, {"first", 4}, {"updates", 9}}));
  sut_.first_step(Rank{1});
  EXPECT_EQ(told(), (json{{"event", "first_step"}, {"worker", 1}}));
  sut_.node_lost(NodeId{1}, "gone");
  EXPECT_EQ(told(), (json{{"event", "node_lost"}, {"node", 1}, {"text", "gone"}}));
  sut_.node_joined({Rank{1}, Rank{3}}, "there");
  EXPECT_EQ(told(), (json{{"event", "node_joined"}, {"node", 2}, {"leg", 0}, {"text", "there"}, {"places", {1, 3}}}));
  sut_.saved(Rank{1}, 7);
  EXPECT_EQ(told(), (json{{"event", "saved"}, {"worker", 1}, {"update", 7}}));
  sut_.metric(Rank{1}, 7, 0.5, "entropy", 2);
  EXPECT_EQ(
      told(),
      (json{{"event", "metric"}, {"worker", 1}, {"update", 7}, {"clock_s", 0.5}, {"name", "entropy"}, {"value", 2.0}}));
  sut_.file("/data", "abc");
  EXPECT_EQ(told(), (json{{"event", "file"}, {"path", "/data"}, {"hash", "abc"}}));
  sut_.final_model(Rank{1}, "abc");
  EXPECT_EQ(told(), (json{{"event", "final"}, {"worker", 1}, {"model", "abc"}}));
  sut_.stopping("enough");
  EXPECT_EQ(told(), (json{{"event", "stopping"}, {"node", 2}, {"text", "enough"}}));
  sut_.warning("that");
  EXPECT_EQ(told(), (json{{"event", "warning"}, {"text", "that"}}));
  sut_.failed("this");
  EXPECT_EQ(told(), (json{{"event", "failed"}, {"text", "this"}}));
}

TEST_F(JobNewsTest, WhoLeavesAJobThatHasEndedIsNoLoss) {
  sut_.left(Rank{1}, "killed");
  EXPECT_EQ(told(), (json{{"event", "left"},
                          {"worker", 1},
                          {"ended", false},
                          {"returns", false},
                          {"drained", false},
                          {"with_node", false},
                          {"text", "killed"}}));
  sut_.left_with_node(Rank{1}, "gone");
  EXPECT_EQ(told().at("with_node"), true);
  sut_.drained(Rank{1}, "as was asked");
  EXPECT_EQ(told().at("drained"), true);
  sut_.left_for_a_while(Rank{1}, "killed");
  EXPECT_EQ(told().at("returns"), true);
  sut_.returned(Rank{1}, 7, {0.5, 1000, 64}, "is back");
  EXPECT_EQ(told(), (json{{"event", "returned"},
                          {"worker", 1},
                          {"update", 7},
                          {"after_s", 0.5},
                          {"bytes", 1000},
                          {"samples", 64},
                          {"text", "is back"}}));
  sut_.left_ended_job(Rank{1}, "killed");
  EXPECT_EQ(told().at("ended"), true);
}

TEST_F(JobNewsTest, WhatIsSaidHasABound) {
  sut_.failed(std::string(std::size_t{3} << 20, 'x'));
  EXPECT_EQ(told().at("text").get<std::string>().size(), (std::size_t{1} << 20) + 3);
}

}  // namespace
}  // namespace paceline::cluster
