#include "algorithms/cluster/head_requests.h"

#include <gtest/gtest.h>

namespace paceline::cluster {
namespace {

using namespace std::chrono_literals;

const Instant kAsked{1s};

TEST(HeadRequestsTest, WhatHasNoAnswerIsAskedAgainInOrder) {
  HeadRequests sut;
  EXPECT_TRUE(sut.add({"driver/1", 1, "submit", "{}"}));
  EXPECT_TRUE(sut.add({"driver/1", 2, "status", "{}"}));
  EXPECT_TRUE(sut.add({"driver/2", 1, "stop", "{}"}));
  EXPECT_TRUE(sut.answered("driver/1", 2));
  EXPECT_FALSE(sut.answered("driver/1", 2)) << "late, of a head that was frozen";
  EXPECT_FALSE(sut.answered("driver/3", 1));
  ASSERT_EQ(sut.waiting().size(), 2U);
  EXPECT_EQ(sut.waiting()[0].verb, "submit");
  EXPECT_EQ(sut.waiting()[1].from, "driver/2");
}

TEST(HeadRequestsTest, NobodyWaitsForEverForAHeadThatDoesNotComeBack) {
  HeadRequests sut;
  sut.add({"driver/1", 1, "submit", "{}"});
  EXPECT_FALSE(sut.next_deadline()) << "it is there, and answers";
  sut.on_head_gone(kAsked);
  sut.on_head_gone(kAsked + 5s);
  ASSERT_EQ(sut.next_deadline(), kAsked + HeadRequests::kPatience);
  EXPECT_TRUE(sut.given_up(kAsked + HeadRequests::kPatience - 1ns).empty());
  EXPECT_EQ(sut.given_up(kAsked + HeadRequests::kPatience).size(), 1U);
  EXPECT_TRUE(sut.waiting().empty());
  sut.add({"driver/1", 2, "status", "{}"});
  EXPECT_EQ(sut.given_up(kAsked + HeadRequests::kPatience).size(), 1U) << "asked meanwhile: told at once";
  sut.on_head_back();
  sut.add({"driver/1", 3, "status", "{}"});
  EXPECT_FALSE(sut.next_deadline());
}

TEST(HeadRequestsTest, IsBounded) {
  HeadRequests sut;
  for (std::uint64_t i = 0; i < HeadRequests::kMax; ++i) EXPECT_TRUE(sut.add({"driver/1", i, "status", "{}"}));
  EXPECT_FALSE(sut.add({"driver/1", 1, "status", "{}"}));
}

}  // namespace
}  // namespace paceline::cluster
