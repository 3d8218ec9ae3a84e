#include "actors/worker/work_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

namespace paceline::worker {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr Duration kPatience = std::chrono::milliseconds(5);

actors::Call call_of(std::uint64_t task, ActorId actor = {}) {
  actors::Call one;
  one.task = TaskId{task};
  one.actor = actor;
  return one;
}

TEST(WorkQueue, AnIdleWorkerGivesNothingBack) {
  WorkQueue sut;
  std::optional<Instant> again;
  ASSERT_TRUE(sut.push(call_of(1)));
  const Instant late = steady_now() + std::chrono::hours(1);
  EXPECT_THAT(sut.take_unbegun(late, kPatience, again), IsEmpty()) << "its thread is about to take it";
  EXPECT_EQ(again, late + kPatience) << "and then others may wait behind it";
  again.reset();
  (void)sut.pop();
  EXPECT_THAT(sut.take_unbegun(late, kPatience, again), IsEmpty());
  EXPECT_FALSE(again) << "nothing waits";
}

TEST(WorkQueue, WhatWaitsBehindALongTaskIsGivenBack) {
  WorkQueue sut;
  std::optional<Instant> again;
  for (std::uint64_t task = 1; task <= 3; ++task) ASSERT_TRUE(sut.push(call_of(task)));
  (void)sut.pop();
  const Instant now = steady_now();
  EXPECT_THAT(sut.take_unbegun(now, std::chrono::hours(1), again), IsEmpty());
  ASSERT_TRUE(again);
  EXPECT_GT(*again, now + std::chrono::minutes(59));
  const auto unbegun = sut.take_unbegun(now + kPatience, kPatience, again);
  ASSERT_THAT(unbegun, SizeIs(2));
  EXPECT_EQ(unbegun[0].task, TaskId{2});
  EXPECT_EQ(unbegun[1].task, TaskId{3});
}

TEST(WorkQueue, CallsOfItsActorStay) {
  WorkQueue sut;
  std::optional<Instant> again;
  ASSERT_TRUE(sut.push(call_of(1, ActorId{7})));
  ASSERT_TRUE(sut.push(call_of(2, ActorId{7})));
  (void)sut.pop();
  EXPECT_THAT(sut.take_unbegun(steady_now() + kPatience, kPatience, again), IsEmpty());
  EXPECT_EQ(std::get<actors::Call>(sut.pop()).task, TaskId{2});
}

TEST(WorkQueue, WhatHasBegunAndWhatHasNotTakeTurns) {
  WorkQueue sut;
  ASSERT_TRUE(sut.push(call_of(1, ActorId{7})));
  ASSERT_TRUE(sut.push(call_of(2, ActorId{7})));
  for (std::uint64_t task = 3; task <= 5; ++task) sut.resume({TaskId{task}, [] {}});
  EXPECT_EQ(std::get<Resumption>(sut.pop()).within, TaskId{3});
  EXPECT_EQ(std::get<actors::Call>(sut.pop()).task, TaskId{1});
  EXPECT_EQ(std::get<Resumption>(sut.pop()).within, TaskId{4});
  EXPECT_EQ(std::get<actors::Call>(sut.pop()).task, TaskId{2});
  EXPECT_EQ(std::get<Resumption>(sut.pop()).within, TaskId{5});
}

TEST(WorkQueue, WhatSleepsGoesOnWhenItsTimeHasComeAndKeepsNobody) {
  WorkQueue sut;
  const Instant begun = steady_now();
  sut.resume_at(begun + std::chrono::milliseconds(20), {TaskId{2}, [] {}});
  sut.resume_at(begun + std::chrono::milliseconds(10), {TaskId{3}, [] {}});
  ASSERT_TRUE(sut.push(call_of(1, ActorId{7})));
  EXPECT_EQ(std::get<actors::Call>(sut.pop()).task, TaskId{1});
  EXPECT_EQ(std::get<Resumption>(sut.pop()).within, TaskId{3});
  EXPECT_EQ(std::get<Resumption>(sut.pop()).within, TaskId{2});
  EXPECT_GE(steady_now() - begun, std::chrono::milliseconds(20));
}

TEST(WorkQueue, WhatHasBegunGoesOnInItsThread) {
  WorkQueue sut;
  sut.set_threads(2);
  sut.resume({TaskId{2}, [] {}}, 1);
  ASSERT_TRUE(sut.push(call_of(1, ActorId{7})));
  EXPECT_EQ(std::get<actors::Call>(sut.pop(0)).task, TaskId{1}) << "the other one's is not for it";
  EXPECT_EQ(std::get<Resumption>(sut.pop(1)).within, TaskId{2});
}

/// Each thread's calls go on once in it; all is taken, and once, whoever was woken for what.
TEST(WorkQueue, ThreadsTakeEverythingOnce) {
  constexpr std::uint64_t kCalls = 2000;
  constexpr std::size_t kThreads = 4;
  WorkQueue sut;
  sut.set_threads(kThreads);
  std::mutex mutex;
  std::multiset<std::uint64_t> begun, gone_on;
  std::atomic<std::uint64_t> left{kCalls};
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      while (true) {
        auto next = sut.pop(thread);
        if (auto* taken = std::get_if<actors::Call>(&next)) {
          if (taken->task == TaskId{}) return;
          std::lock_guard lock(mutex);
          begun.insert(taken->task.value);
          sut.resume({taken->task, [] {}}, thread);
        } else {
          {
            std::lock_guard lock(mutex);
            gone_on.insert(std::get<Resumption>(next).within.value);
          }
          if (--left > 0) continue;
          for (std::size_t end = 0; end < kThreads; ++end) EXPECT_TRUE(sut.push(call_of(0, ActorId{7})));
        }
      }
    });
  }
  for (std::uint64_t task = 1; task <= kCalls; ++task) ASSERT_TRUE(sut.push(call_of(task, ActorId{7})));
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(begun.size(), kCalls);
  EXPECT_EQ(std::set(begun.begin(), begun.end()).size(), kCalls);
  EXPECT_EQ(gone_on, begun);
}

TEST(WorkQueue, WhatIsCancelledLeavesIt) {
  WorkQueue sut;
  for (std::uint64_t task = 1; task <= 3; ++task) ASSERT_TRUE(sut.push(call_of(task)));
  EXPECT_FALSE(sut.take(TaskId{2}, "somebody")) << "it is not theirs";
  const auto taken = sut.take(TaskId{2}, "");
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->task, TaskId{2});
  EXPECT_FALSE(sut.take(TaskId{2}, ""));
  EXPECT_EQ(std::get<actors::Call>(sut.pop()).task, TaskId{1});
  EXPECT_EQ(std::get<actors::Call>(sut.pop()).task, TaskId{3});
}

}  // namespace
}  // namespace paceline::worker
