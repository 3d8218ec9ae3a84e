#include "algorithms/cluster/training/early_messages.h"

#include <gtest/gtest.h>

#include <string>

namespace paceline::cluster {
namespace {

class EarlyMessagesTest : public testing::Test {
 protected:
  bool keep(std::uint64_t job, const std::string& from, std::size_t bulk = 0) {
    wire::Message message;
    message.root().initGone().setJob(job);
    return sut_.keep(JobId{job}, from, message.root().asReader(), transport::Frame(bulk));
  }
  std::string open(std::uint64_t job) {
    std::string kept;
    for (const auto& message : sut_.open(JobId{job})) {
      EXPECT_EQ(message.envelope->root().asReader().getGone().getJob(), job);
      kept += message.from + "+" + std::to_string(message.bulk.size()) + " ";
    }
    return kept;
  }

  EarlyMessages sut_;
};

TEST_F(EarlyMessagesTest, AJobGetsWhatCameBeforeInItsOrderAndOnce) {
  keep(3, "agent/0", 8);
  keep(3, "session/1");
  keep(3, "agent/0");
  EXPECT_EQ(open(3), "agent/0+8 session/1+0 agent/0+0 ");
  EXPECT_EQ(open(3), "");
}

TEST_F(EarlyMessagesTest, OnlyJobsAreToComeThatTheHeadHasNotToldOf) {
  EXPECT_TRUE(sut_.is_to_come(JobId{1}));
  open(2);
  EXPECT_FALSE(sut_.is_to_come(JobId{1})) << "it is over, or has no worker here";
  EXPECT_FALSE(sut_.is_to_come(JobId{2}));
  EXPECT_TRUE(sut_.is_to_come(JobId{3}));
}

TEST_F(EarlyMessagesTest, WhatCameForOlderJobsIsForgottenAndForNewerOnesKept) {
  keep(1, "agent/1");
  keep(3, "agent/3");
  EXPECT_EQ(open(2), "");
  EXPECT_EQ(open(1), "");
  EXPECT_EQ(open(3), "agent/3+0 ");
}

TEST_F(EarlyMessagesTest, WhatIsTakenIsTheJobsAlone) {
  for (const std::uint64_t job : {1, 2, 3}) keep(job, "agent/1");
  EXPECT_EQ(sut_.take(JobId{2}).size(), 1u);
  EXPECT_TRUE(sut_.has(JobId{1}));
  EXPECT_FALSE(sut_.has(JobId{2}));
  EXPECT_TRUE(sut_.is_to_come(JobId{2}));
}

TEST_F(EarlyMessagesTest, ThereIsABound) {
  for (std::size_t i = 0; i < EarlyMessages::kMax; ++i) ASSERT_TRUE(keep(1 + i % 7, "agent/1"));
  EXPECT_FALSE(keep(8, "agent/1"));
  open(1);
  EXPECT_TRUE(keep(8, "agent/1"));
}

}  // namespace
}  // namespace paceline::cluster
