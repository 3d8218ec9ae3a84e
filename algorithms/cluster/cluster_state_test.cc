#include "algorithms/cluster/cluster_state.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;
using std::chrono::seconds;

const ClusterState::Wall kNoon{seconds(43'200)};
constexpr Instant kStart = Instant(seconds(100));

JobEntry wagma_entry() {
  JobEntry job;
  job.options.strategy = "wagma";
  job.options.program = "job.cpp";
  job.node_of = {NodeId{0}, NodeId{1}};
  job.driver.peer = "driver/7";
  return job;
}

class ClusterStateTest : public ::testing::Test {
 protected:
  /// As a head that is started anew reads it.
  ClusterState next_head() const { return ClusterState(store_); }

  std::shared_ptr<store::MemoryStore> store_ = std::make_shared<store::MemoryStore>();
  ClusterState sut{store_};
};

TEST_F(ClusterStateTest, AJobThatIsOverIsThereForTheNextHead) {
  sut.on_running(JobId{3}, wagma_entry(), kNoon);
  EXPECT_TRUE(sut.jobs_over().empty());
  sut.on_closed(JobId{3}, {{"state", "ended"}, {"updates", 120}, {"value", 0.9}}, kNoon + seconds(5));
  auto next = next_head();
  EXPECT_TRUE(next.is_over(JobId{3}));
  EXPECT_EQ(next.newest(), JobId{3});
  ASSERT_EQ(next.jobs_over().size(), 1U);
  const json row = next.jobs_over().front();
  EXPECT_EQ(row["state"], "ended");
  EXPECT_EQ(row["strategy"], "wagma");
  EXPECT_EQ(row["updates"], 120);
  EXPECT_EQ(row["began"], "1970-01-01T12:00:00Z");
  EXPECT_EQ(row["ended"], "1970-01-01T12:00:05Z");
  EXPECT_EQ(row["took_s"], 5);
}

TEST_F(ClusterStateTest, OneWhoseDriverSaysNothingHasFailedUnlessItSaysOtherwiseLater) {
  sut.on_running(JobId{1}, wagma_entry(), kNoon);
  sut.on_closed(JobId{1}, nullptr, kNoon);
  EXPECT_EQ(sut.jobs_over().front()["failure"], "its driver ended before the job did");
  sut.on_closed(JobId{1}, {{"updates", 7}}, kNoon);
  EXPECT_EQ(sut.jobs_over().front()["state"], "failed");
  EXPECT_EQ(next_head().jobs_over().front()["updates"], 7) << "the nodes' last figures come later";
  sut.on_closed(JobId{1}, {{"state", "ended"}, {"updates", 8}}, kNoon);
  EXPECT_EQ(sut.jobs_over().front()["state"], "ended") << "it had lost its agent, and has found another one";
  EXPECT_FALSE(sut.jobs_over().front().contains("failure"));
  sut.on_running(JobId{2}, wagma_entry(), kNoon);
  sut.on_closed(JobId{2}, {{"state", "running"}, {"job", 1}, {"nodes", "many"}}, kNoon);
  EXPECT_EQ(sut.jobs_over().back()["state"], "failed") << "a word that says nothing";
  EXPECT_EQ(sut.jobs_over().back()["job"], 2);
  sut.on_closed(JobId{9}, {{"state", "ended"}}, kNoon);
  EXPECT_EQ(sut.jobs_over().size(), 2U) << "nobody knows it";
}

TEST_F(ClusterStateTest, NodesThatAJobHasLostStandOnce) {
  sut.on_running(JobId{1}, wagma_entry(), kNoon);
  for (int i = 0; i < 2; ++i) sut.on_node_lost(JobId{1}, NodeId{1}, "its process ended", kNoon);
  sut.write(kStart);
  auto next = next_head();
  next.on_node_lost(JobId{1}, NodeId{1}, "told again", kNoon);
  next.on_closed(JobId{1}, {{"state", "ended"}}, kNoon);
  const json lost = next.jobs_over().front()["lost_nodes"];
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost.front()["cause"], "its process ended");
}

TEST_F(ClusterStateTest, WhatNobodyRunsWasLostWithTheHead) {
  for (const std::uint64_t job : {1, 2, 3}) sut.on_running(JobId{job}, wagma_entry(), kNoon);
  sut.on_closed(JobId{1}, {{"state", "ended"}}, kNoon);
  sut.write(kStart);
  auto next = next_head();
  next.lose_all_but({JobId{2}}, kNoon);
  EXPECT_EQ(next.jobs_over().front()["state"], "ended");
  EXPECT_FALSE(next.is_over(JobId{2}));
  EXPECT_TRUE(next.is_over(JobId{3}));
}

TEST_F(ClusterStateTest, AFullDiskIsToldOfAndTriedAgain) {
  store_->fill(true);
  sut.on_running(JobId{1}, wagma_entry(), kNoon);
  sut.on_closed(JobId{1}, {{"state", "ended"}}, kNoon);
  EXPECT_NE(sut.problem(), "");
  sut.write(kStart);
  EXPECT_EQ(sut.next_deadline(), kStart + ClusterState::kTryAgain);
  store_->fill(false);
  sut.write(kStart);
  EXPECT_FALSE(next_head().is_over(JobId{1})) << "not yet";
  sut.write(kStart + ClusterState::kTryAgain);
  EXPECT_TRUE(next_head().is_over(JobId{1}));
  EXPECT_EQ(sut.problem(), "");
  EXPECT_EQ(sut.next_deadline(), std::nullopt);
}

TEST_F(ClusterStateTest, OnlyTheNewestJobsAreKeptAndNumbersAreNotUsedAgain) {
  constexpr std::uint64_t kMore = ClusterState::kJobsKept + 5;
  sut.on_running(JobId{1}, wagma_entry(), kNoon);  // It runs on.
  for (std::uint64_t job = 2; job <= kMore + 1; ++job) {
    sut.on_running(JobId{job}, wagma_entry(), kNoon);
    sut.on_closed(JobId{job}, {{"state", "ended"}}, kNoon);
  }
  auto next = next_head();
  EXPECT_EQ(next.jobs_over().size(), ClusterState::kJobsKept);
  EXPECT_EQ(next.jobs_over().front()["job"], 7);
  EXPECT_EQ(next.newest(), JobId{kMore + 1});
  EXPECT_FALSE(next.is_over(JobId{1}));
}

TEST_F(ClusterStateTest, StartsOfAgentsAreCounted) {
  EXPECT_EQ(sut.starts(NodeId{1}), 0);
  sut.on_registered(NodeId{1}, 70, "tcp://1", kNoon);
  sut.on_registered(NodeId{1}, 70, "tcp://1", kNoon);
  EXPECT_EQ(sut.starts(NodeId{1}), 1) << "it was cut off, and is back";
  sut.write(kStart);
  auto next = next_head();
  next.on_registered(NodeId{1}, 70, "tcp://1", kNoon);
  EXPECT_EQ(next.starts(NodeId{1}), 1) << "of a head that was started anew";
  next.on_registered(NodeId{1}, 71, "tcp://2", kNoon);
  EXPECT_EQ(next.starts(NodeId{1}), 2);
}

TEST_F(ClusterStateTest, ANodeIsDrainedUntilAnotherAgentIsThere) {
  sut.on_registered(NodeId{1}, 70, "tcp://1", kNoon);
  sut.on_drained(NodeId{1});
  sut.write(kStart);
  auto next = next_head();
  next.on_registered(NodeId{1}, 70, "tcp://1", kNoon);
  EXPECT_TRUE(next.is_drained(NodeId{1})) << "for the head that is started anew, too";
  EXPECT_FALSE(next.is_drained(NodeId{0}));
  next.on_registered(NodeId{1}, 71, "tcp://2", kNoon);
  EXPECT_FALSE(next.is_drained(NodeId{1}));
}

TEST_F(ClusterStateTest, WhatIsNoRecordIsPassedOver) {
  ASSERT_TRUE(store_->write(
      {{"job/1", "[]"}, {"job/x", "{}"}, {"node/-", "{}"}, {"other", "{}"}, {"job/2", "{\"lost_nodes\": 7}"}}));
  auto next = next_head();
  next.on_node_lost(JobId{2}, NodeId{1}, "", kNoon);
  EXPECT_EQ(next.newest(), JobId{2});
  EXPECT_EQ(next.jobs_over().size(), 1U);
}

TEST(ClusterStateWithoutAStoreTest, KnowsWhatItWasTold) {
  ClusterState sut(nullptr);
  sut.on_running(JobId{1}, wagma_entry(), kNoon);
  sut.on_closed(JobId{1}, {{"state", "ended"}}, kNoon);
  sut.write(kStart);
  EXPECT_EQ(sut.jobs_over().size(), 1U);
  EXPECT_EQ(sut.problem(), "");
}

}  // namespace
}  // namespace paceline::cluster
