#include "actors/gathering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "actors/task_error.h"
#include "actors/wait.h"

namespace paceline::actors {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class GatheringTest : public testing::Test {
 protected:
  PendingResultPtr result() {
    return results.emplace_back(std::make_shared<PendingResult>(TaskId{results.size() + 1}));
  }
  std::vector<Future<int>> futures(std::size_t count) {
    std::vector<Future<int>> all;
    for (std::size_t i = 0; i < count; ++i) all.emplace_back(result());
    return all;
  }
  void arrive(std::size_t index, int value = 7) { results[index]->complete(to_bytes(value)); }
  static std::vector<TaskId> tasks(const std::vector<Future<int>>& futures) {
    std::vector<TaskId> ids;
    for (const auto& future : futures) ids.push_back(future.pending()->task());
    return ids;
  }

  std::vector<PendingResultPtr> results;
};

TEST_F(GatheringTest, PlacesComeOutInTheOrderOfArrivalAndAreFreeThen) {
  for (int i = 0; i < 4; ++i) result();
  Gathering sut(3);
  for (std::size_t i = 0; i < 3; ++i) sut.add(i, *results[i]);
  arrive(2);
  arrive(0);
  EXPECT_TRUE(sut.wait(2, 0s, {}));
  EXPECT_THAT(sut.take(), ElementsAre(2, 0));
  EXPECT_FALSE(sut.wait(1, 0s, {}));
  arrive(3);
  sut.add(0, *results[3]);  // It is there already.
  arrive(1);
  EXPECT_THAT(sut.take(), ElementsAre(0, 1));
}

TEST_F(GatheringTest, WhoHasGoneIsToldNothing) {
  for (int i = 0; i < 3; ++i) result();
  for (int round = 0; round < 1000; ++round) {
    Gathering sut(3);
    for (std::size_t i = 0; i < 3; ++i) sut.add(i, *results[i]);
    EXPECT_FALSE(sut.wait(1, 0s, {}));
  }
  Gathering left(3), other(3);
  for (std::size_t i = 0; i < 3; ++i) left.add(i, *results[i]), other.add(i, *results[i]);
  {
    Gathering gone(3);
    for (std::size_t i = 0; i < 3; ++i) gone.add(i, *results[i]);
  }
  arrive(1);
  EXPECT_THAT(left.take(), ElementsAre(1));
  EXPECT_THAT(other.take(), ElementsAre(1));
}

TEST_F(GatheringTest, ResultsThatArriveWhileThreadsComeAndGo) {
  for (int i = 0; i < 200; ++i) result();
  std::atomic<bool> over{false};
  const auto wait_again_and_again = [&] {
    while (!over) (void)wait_for_some(results, 1 + results.size() / 2, 100us);
  };
  std::thread one(wait_again_and_again), two(wait_again_and_again);
  for (std::size_t i = 0; i < results.size(); ++i) {
    arrive(i);
    if (i % 10 == 0) std::this_thread::yield();
  }
  EXPECT_TRUE(wait_for_some(results, results.size(), std::nullopt));
  over = true;
  one.join();
  two.join();
}

TEST_F(GatheringTest, WaitPartsWhatIsThereInOrder) {
  const auto all = futures(5);
  arrive(4);
  arrive(1);
  arrive(2);
  const auto [ready, pending] = paceline::wait(all, {.count = 2});
  EXPECT_THAT(tasks(ready), ElementsAre(TaskId{2}, TaskId{3}));
  EXPECT_THAT(tasks(pending), ElementsAre(TaskId{1}, TaskId{4}, TaskId{5})) << "never more than were asked for";
  EXPECT_THAT(paceline::wait(all, {.count = 4, .timeout = 1ms}).ready, SizeIs(3));
  EXPECT_THAT(paceline::wait(all, {.count = 0}).ready, IsEmpty());
}

TEST_F(GatheringTest, WaitIsWokenByTheLastThatIsMissing) {
  const auto all = futures(100);
  std::thread arrives([&] {
    for (std::size_t i = 0; i < 60; ++i) arrive(99 - i);
  });
  const auto waited = paceline::wait(all, {.count = 60});
  arrives.join();
  EXPECT_THAT(waited.ready, SizeIs(60));
  EXPECT_THAT(tasks(waited.ready).front(), TaskId{41});
}

TEST_F(GatheringTest, WhatCannotBeWaitedForIsRefused) {
  auto all = futures(2);
  EXPECT_THROW((void)paceline::wait(all, {.count = 3}), TaskError);
  all.emplace_back();
  EXPECT_THROW((void)paceline::wait(all, {.count = 3}), TaskError);
  EXPECT_THROW((void)paceline::get(all), TaskError);
}

TEST_F(GatheringTest, GetGivesAllOrSaysWhichOneIsLate) {
  const auto all = futures(3);
  arrive(0, 10);
  try {
    (void)paceline::get({.timeout = 1ms}, all);
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::timed_out);
    EXPECT_THAT(error.what(), HasSubstr("future 1 of 3: task 2 has had no result for 0.001 s"));
  }
  arrive(1, 11);
  arrive(2, 12);
  EXPECT_THAT(paceline::get(all), ElementsAre(10, 11, 12));
  const Future<void> nothing(result());
  results.back()->complete(Bytes{});
  EXPECT_EQ(paceline::get(all[2], nothing, all[0]), std::tuple(12, std::monostate{}, 10));
  EXPECT_EQ(paceline::get({.timeout = 1s}, all[0]), std::tuple(10));
}

TEST_F(GatheringTest, ATimeoutNamesWhatWasAwaited) {
  const Future<int> of_actor(std::make_shared<PendingResult>(TaskId{4}, ActorId{9}));
  try {
    (void)of_actor.get(2ms);
    FAIL();
  } catch (const TaskError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::timed_out);
    EXPECT_THAT(error.what(), HasSubstr("call 4 of actor 9 has had no result for 0.002 s"));
  }
  of_actor.pending()->complete(to_bytes(3));
  EXPECT_EQ(of_actor.get(Duration::max()), 3) << "it stays usable, and a very long time is one";
}

/// What a thread's observer hears.
class Heard final : public WaitObserver {
 public:
  Heard() { observe_waits(this); }
  ~Heard() override { observe_waits(nullptr); }
  void waits(TaskId task) override {
    words.push_back(static_cast<int>(task.value));
    if (on_waits) on_waits(task);
  }
  void goes_on() override { words.push_back(-1); }
  std::vector<int> words;
  std::function<void(TaskId)> on_waits;
};

TEST_F(GatheringTest, OneThatWaitsForAllSaysWhichOneItCannotDoWithout) {
  const auto all = futures(3);
  Heard heard;
  heard.on_waits = [&](TaskId task) { arrive(task.value - 1); };
  EXPECT_THAT(paceline::get(all), ElementsAre(7, 7, 7));
  EXPECT_THAT(heard.words, ElementsAre(1, 2, 3, -1)) << "its cpus are given back once";
  results.clear();
  const auto more = futures(2);
  heard.words.clear();
  EXPECT_THAT(paceline::wait(more, {.count = 2}).ready, SizeIs(2));
  EXPECT_THAT(heard.words, ElementsAre(1, 2, -1));
}

TEST_F(GatheringTest, OneThatWaitsForAnyOrNotForEverNamesNone) {
  const auto all = futures(3);
  Heard heard;
  heard.on_waits = [&](TaskId) { arrive(1); };
  EXPECT_THAT(paceline::wait(all, {.count = 1}).ready, SizeIs(1));
  EXPECT_THAT(heard.words, ElementsAre(0, -1));
  heard.words.clear();
  EXPECT_THROW((void)paceline::get({.timeout = 5ms}, all), TaskError);
  EXPECT_THAT(heard.words, ElementsAre(0, -1));
}

TEST_F(GatheringTest, AShortWaitIsNobodysBusiness) {
  const auto all = futures(3);
  Heard heard;
  EXPECT_THAT(paceline::wait(all, {.timeout = 1ms}).ready, IsEmpty());
  EXPECT_THAT(heard.words, IsEmpty());
}

}  // namespace
}  // namespace paceline::actors
