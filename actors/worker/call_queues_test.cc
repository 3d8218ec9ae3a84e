#include "actors/worker/call_queues.h"

#include <gtest/gtest.h>

namespace paceline::worker {
namespace {

constexpr ActorId kActor{7};

actors::Call call(std::uint64_t task, std::string group = "") {
  actors::Call one;
  one.task = TaskId{task};
  one.actor = kActor;
  one.group = std::move(group);
  return one;
}

actors::CreateActor creation(actors::Concurrency concurrency) {
  actors::CreateActor one;
  one.actor = kActor;
  one.concurrency = std::move(concurrency);
  return one;
}

TaskId popped(WorkQueue& queue) { return std::get<actors::Call>(queue.pop()).task; }

TEST(CallQueues, ACallGoesToTheQueueOfItsGroup) {
  CallQueues sut;
  ASSERT_TRUE(sut.push(creation({2, {{"io", 3}}})));
  ASSERT_TRUE(sut.push(call(1)));
  ASSERT_TRUE(sut.push(call(2, "io")));
  EXPECT_TRUE(std::holds_alternative<actors::CreateActor>(sut.first().pop()));
  ASSERT_EQ(sut.groups().size(), 2U);
  EXPECT_EQ(sut.first().threads(), 2U);
  EXPECT_EQ(sut.groups().back().name, "io");
  EXPECT_EQ(sut.groups().back().queue.threads(), 3U);
  EXPECT_EQ(popped(sut.groups().back().queue), TaskId{2});
  EXPECT_EQ(popped(sut.first()), TaskId{1});
}

TEST(CallQueues, OneOfAnUnknownGroupIsAmongTheOthersToBeRefused) {
  CallQueues sut;
  ASSERT_TRUE(sut.push(creation({1, {{"io", 1}}})));
  ASSERT_TRUE(sut.push(call(1, "nobody's")));
  (void)sut.first().pop();
  EXPECT_EQ(popped(sut.first()), TaskId{1});
}

TEST(CallQueues, WhatIsCancelledLeavesWhicheverItIsIn) {
  CallQueues sut;
  ASSERT_TRUE(sut.push(creation({1, {{"io", 1}}})));
  ASSERT_TRUE(sut.push(call(1)));
  ASSERT_TRUE(sut.push(call(2, "io")));
  EXPECT_TRUE(sut.take(TaskId{2}, ""));
  EXPECT_TRUE(sut.take(TaskId{1}, ""));
  EXPECT_FALSE(sut.take(TaskId{1}, ""));
}

TEST(CallQueues, ASecondCreationChangesNothing) {
  CallQueues sut;
  ASSERT_TRUE(sut.push(creation({4, {{"io", 1}}})));
  ASSERT_TRUE(sut.push(creation({1, {{"other", 1}}})));
  EXPECT_EQ(sut.first().threads(), 4U);
  EXPECT_EQ(sut.groups().size(), 2U);
}

}  // namespace
}  // namespace paceline::worker
