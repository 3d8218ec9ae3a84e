#include "actors/tasks/owned_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "actors/process_ids.h"
#include "tests/support/sanitized.h"

namespace paceline::actors {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Shape kPlain{};
const WorkerId kFirst = worker_id(NodeId{0}, 1);
const WorkerId kSecond = worker_id(NodeId{0}, 2);
const WorkerId kFar = worker_id(NodeId{1}, 1);

class OwnedTasksTest : public testing::Test {
 protected:
  void add(std::uint64_t id, const Shape& shape) {
    sut.add(TaskId{id}, shape, {}, OwnedTasks::Frame(100), std::make_shared<PendingResult>(TaskId{id}));
  }
  void add(std::uint64_t id, int retries = 0, std::size_t bytes = 100, bool after_errors = false) {
    sut.add(TaskId{id}, kPlain, {retries, after_errors}, OwnedTasks::Frame(bytes),
            std::make_shared<PendingResult>(TaskId{id}));
  }
  /// What may go now, by worker.
  std::map<WorkerId, std::vector<std::uint64_t>> push() {
    std::map<WorkerId, std::vector<std::uint64_t>> pushed;
    while (auto one = sut.next(now)) pushed[one->worker].push_back(one->task.value);
    return pushed;
  }
  void lend(WorkerId worker, bool line = true) { sut.on_lent(worker, kPlain, line, now); }
  void lend(WorkerId worker, const Shape& shape) { sut.on_lent(worker, shape, true, now); }
  PendingResultPtr result(std::uint64_t id, Duration ran = std::chrono::microseconds(1)) {
    return sut.on_result(TaskId{id}, ran, now);
  }

  Instant now{std::chrono::hours(1)};
  OwnedTasks sut;
};

TEST_F(OwnedTasksTest, WorkersAreWantedForWhatIsQueued) {
  EXPECT_FALSE(sut.next_word(now));
  for (std::uint64_t id = 1; id <= 3; ++id) add(id);
  const auto word = sut.next_word(now);
  ASSERT_TRUE(word);
  EXPECT_EQ(word->workers, 4u) << "rounded up, so that few words are needed";
  EXPECT_FALSE(sut.next_word(now)) << "it was said";
  add(4);
  EXPECT_FALSE(sut.next_word(now));
}

TEST_F(OwnedTasksTest, OneAtATimeWhileNobodyKnowsHowLongTheyTake) {
  for (std::uint64_t id = 1; id <= 3; ++id) add(id);
  lend(kFirst);
  EXPECT_THAT(push()[kFirst], ElementsAre(1));
  lend(kSecond);
  EXPECT_THAT(push()[kSecond], ElementsAre(2));
  ASSERT_TRUE(result(1, milliseconds(50)));
  EXPECT_THAT(push()[kFirst], ElementsAre(3)) << "long ones: still one at a time";
}

TEST_F(OwnedTasksTest, ShortOnesGoManyAtATime) {
  for (std::uint64_t id = 1; id <= 1000; ++id) add(id);
  lend(kFirst);
  push();
  ASSERT_TRUE(result(1, std::chrono::microseconds(20)));
  EXPECT_THAT(push()[kFirst], SizeIs(100)) << "2 ms of them";
}

TEST_F(OwnedTasksTest, WhatIsGivenBackUnbegunGoesElsewhereFirst) {
  for (std::uint64_t id = 1; id <= 4; ++id) add(id);
  lend(kFirst);
  push();
  result(1);
  EXPECT_THAT(push()[kFirst], ElementsAre(2, 3, 4));
  sut.on_unbegun(TaskId{4}, now);
  sut.on_unbegun(TaskId{3}, now);
  EXPECT_THAT(push(), IsEmpty()) << "its worker has something else to do";
  lend(kSecond);
  EXPECT_THAT(push()[kSecond], ElementsAre(3, 4));
  result(2);
  add(5);
  EXPECT_THAT(push()[kFirst], ElementsAre(5)) << "it has answered something";
}

TEST_F(OwnedTasksTest, OnlyTheOldestTaskOfADeadWorkerCanHaveBegun) {
  for (std::uint64_t id = 1; id <= 4; ++id) add(id);
  lend(kFirst);
  push();
  result(1);
  push();
  const auto failed = sut.on_gone(kFirst);
  ASSERT_THAT(failed, SizeIs(1));
  EXPECT_EQ(failed[0].result->task(), TaskId{2});
  lend(kSecond);
  EXPECT_THAT(push()[kSecond], ElementsAre(3, 4)) << "in their order";
}

TEST_F(OwnedTasksTest, ATaskIsRunAgainAsOftenAsItSays) {
  add(1, 1);
  lend(kFirst);
  push();
  EXPECT_THAT(sut.on_gone(kFirst), IsEmpty());
  lend(kSecond);
  EXPECT_THAT(push()[kSecond], ElementsAre(1));
  EXPECT_THAT(sut.on_gone(kSecond), SizeIs(1));
  EXPECT_EQ(sut.size(), 0u);
}

TEST_F(OwnedTasksTest, ATaskIsRunAgainAfterErrorsIfItSaysSo) {
  add(1, 1);
  add(2, 2, 100, true);
  lend(kFirst);
  push();
  EXPECT_FALSE(sut.on_error(TaskId{1}, milliseconds(1), now)) << "after the death of its worker only";
  ASSERT_TRUE(result(1, milliseconds(50)));
  EXPECT_THAT(push()[kFirst], ElementsAre(2));
  EXPECT_TRUE(sut.on_error(TaskId{2}, milliseconds(50), now));
  EXPECT_THAT(push()[kFirst], ElementsAre(2));
  EXPECT_THAT(sut.on_gone(kFirst), IsEmpty()) << "a death is one of the times";
  lend(kSecond);
  EXPECT_THAT(push()[kSecond], ElementsAre(2));
  EXPECT_FALSE(sut.on_error(TaskId{2}, milliseconds(50), now));
  ASSERT_TRUE(result(2));
  EXPECT_EQ(sut.size(), 0u);
  EXPECT_FALSE(sut.on_error(TaskId{2}, milliseconds(1), now)) << "it is over";
}

TEST_F(OwnedTasksTest, WhatIsCancelledIsNotRunAgainAfterAnError) {
  add(1, 5, 100, true);
  lend(kFirst);
  push();
  ASSERT_TRUE(sut.cancel(TaskId{1}));
  EXPECT_FALSE(sut.on_error(TaskId{1}, milliseconds(1), now));
  ASSERT_TRUE(result(1));
  EXPECT_EQ(sut.size(), 0u);
}

TEST_F(OwnedTasksTest, WorkersWithoutWorkAreGivenBackAfterAWhile) {
  add(1);
  ASSERT_TRUE(sut.next_word(now));
  lend(kFirst);
  push();
  result(1);
  EXPECT_FALSE(sut.next_word(now));
  ASSERT_TRUE(sut.next_deadline());
  now = *sut.next_deadline();
  const auto word = sut.next_word(now);
  ASSERT_TRUE(word);
  EXPECT_THAT(word->returned, ElementsAre(kFirst));
  EXPECT_EQ(word->workers, 0u);
  EXPECT_FALSE(sut.next_deadline()) << "nothing is to be done, ever";
}

TEST_F(OwnedTasksTest, AnIdleWorkerIsGivenBackWhileAnotherOneWorksOn) {
  add(1);
  add(2);
  sut.next_word(now);
  lend(kFirst);
  lend(kSecond);
  push();
  result(2);
  now += std::chrono::seconds(2);
  EXPECT_THAT(sut.next_word(now)->returned, ElementsAre(kSecond));
}

TEST_F(OwnedTasksTest, WhatIsThereIsEnoughOnceNothingIsQueued) {
  for (std::uint64_t id = 1; id <= 8; ++id) add(id);
  EXPECT_EQ(sut.next_word(now)->workers, 8u);
  lend(kFirst);
  push();
  result(1);
  push();
  for (std::uint64_t id = 2; id <= 7; ++id) result(id);
  EXPECT_FALSE(sut.next_word(now));
  now = *sut.next_deadline();
  EXPECT_EQ(sut.next_word(now)->workers, 1u) << "nobody else has to give one up for it";
}

TEST_F(OwnedTasksTest, AWorkerThatIsAskedBackLeavesWhenItsTasksAreDone) {
  for (std::uint64_t id = 1; id <= 3; ++id) add(id);
  sut.next_word(now);
  lend(kFirst);
  push();
  sut.on_recalled(kPlain, NodeId{0}, 1);
  EXPECT_FALSE(sut.next_word(now));
  result(1);
  EXPECT_THAT(push(), IsEmpty());
  const auto word = sut.next_word(now);
  ASSERT_TRUE(word);
  EXPECT_THAT(word->returned, ElementsAre(kFirst));
  EXPECT_GE(word->workers, 1u) << "two wait still";
}

TEST_F(OwnedTasksTest, AWorkerThatIsAskedBackLeavesWhenItGivesItsTasksBack) {
  add(1);
  sut.next_word(now);
  lend(kFirst);
  push();
  sut.on_recalled(kPlain, NodeId{0}, 1);
  sut.on_unbegun(TaskId{1}, now);
  EXPECT_THAT(sut.next_word(now)->returned, ElementsAre(kFirst));
}

TEST_F(OwnedTasksTest, WhoIsDoneFirstLeavesInThePlaceOfOneThatIsBusy) {
  for (std::uint64_t id = 1; id <= 4; ++id) add(id);
  lend(kFirst);
  lend(kSecond);
  lend(kFar);
  push();
  sut.next_word(now);
  sut.on_recalled(kPlain, NodeId{0}, 1);
  result(3, milliseconds(50));
  EXPECT_THAT(push()[kFar], ElementsAre(4)) << "one of another node is no help";
  result(2, milliseconds(50));
  EXPECT_THAT(sut.next_word(now)->returned, ElementsAre(kSecond));
  add(5);
  result(1, milliseconds(50));
  EXPECT_THAT(push()[kFirst], ElementsAre(5)) << "it stays";
}

TEST_F(OwnedTasksTest, ALargeTaskWaitsUntilItCanGoTheOtherWay) {
  add(1);
  lend(kFirst);
  push();
  result(1);
  add(2);
  add(3, 0, 1 << 20);
  add(4);
  EXPECT_TRUE(sut.next(now)->by_line);
  EXPECT_FALSE(sut.next(now));
  result(2);
  EXPECT_FALSE(sut.next(now)->by_line);
  EXPECT_FALSE(sut.next(now)) << "or a death could not tell which has begun";
}

TEST_F(OwnedTasksTest, AWorkerWhoseLineEndedIsWaitedForAndThenGivenUp) {
  add(1);
  lend(kFirst);
  push();
  sut.on_line_ended(kFirst, now);
  add(2);
  EXPECT_THAT(push(), IsEmpty());
  EXPECT_THAT(sut.silent(now), IsEmpty());
  now += std::chrono::seconds(5);
  EXPECT_THAT(sut.silent(now), ElementsAre(kFirst));
  EXPECT_THAT(sut.on_gone(kFirst), SizeIs(1));
  EXPECT_THAT(sut.next_word(now)->broken, ElementsAre(kFirst));
}

TEST_F(OwnedTasksTest, WhatNobodyCanRunFails) {
  add(1);
  add(2);
  sut.next_word(now);
  EXPECT_THAT(sut.on_refused(kPlain), SizeIs(2));
  EXPECT_EQ(sut.size(), 0u);
  EXPECT_TRUE(sut.has_room());
  add(3);
  EXPECT_TRUE(sut.next_word(now)) << "it is asked for again";
}

constexpr Shape spread_on(std::int32_t node) { return {1, NodeId{node}, 0, true}; }

TEST_F(OwnedTasksTest, SpreadTasksGoToTheirNodes) {
  for (std::uint64_t id = 1; id <= 4; ++id) add(id, spread_on(static_cast<std::int32_t>(id % 2)));
  lend(kFirst, spread_on(0));
  lend(kFar, spread_on(1));
  const auto pushed = push();
  EXPECT_THAT(pushed.at(kFirst), ElementsAre(2));
  EXPECT_THAT(pushed.at(kFar), ElementsAre(1));
}

TEST_F(OwnedTasksTest, ANodeThatHasDoneItsSpreadTasksTakesThoseOfABusyOne) {
  for (std::uint64_t id = 1; id <= 4; ++id) add(id, spread_on(id == 1 ? 0 : 1));
  lend(kFirst, spread_on(0));
  EXPECT_THAT(push()[kFirst], ElementsAre(1));
  ASSERT_TRUE(result(1, milliseconds(50)));
  EXPECT_THAT(push(), IsEmpty()) << "that node has not been heard of yet";
  lend(kFar, spread_on(1));
  const auto pushed = push();
  EXPECT_THAT(pushed.at(kFar), ElementsAre(2));
  EXPECT_THAT(pushed.at(kFirst), ElementsAre(4)) << "the last one in their queue";
}

TEST_F(OwnedTasksTest, SpreadTasksWhoseNodeLendsNothingGoToAny) {
  add(1, spread_on(1));
  EXPECT_THAT(push(), IsEmpty());
  ASSERT_TRUE(sut.next_word(now));
  ASSERT_TRUE(sut.next_deadline());
  EXPECT_EQ(*sut.next_deadline(), now + std::chrono::seconds(1));
  now += std::chrono::seconds(1);
  EXPECT_THAT(push(), IsEmpty());
  const auto word = sut.next_word(now);
  ASSERT_TRUE(word);
  EXPECT_EQ(word->shape, kPlain);
  EXPECT_EQ(word->workers, 1u);
  lend(kFirst);
  EXPECT_THAT(push()[kFirst], ElementsAre(1));
  add(2, spread_on(1));
  ASSERT_TRUE(result(1, milliseconds(50)));
  EXPECT_THAT(push()[kFirst], ElementsAre(2)) << "others do not wait for that node as long";
  now += std::chrono::seconds(31);
  add(3, spread_on(1));
  EXPECT_THAT(push(), IsEmpty()) << "until it is tried again";
}

TEST_F(OwnedTasksTest, SpreadTasksBehindALongOneGoToAnyNode) {
  add(1, spread_on(0));
  lend(kFirst, spread_on(0));
  push();
  now += std::chrono::seconds(5);
  add(2, spread_on(0));
  EXPECT_THAT(push(), IsEmpty());
  now += std::chrono::seconds(1);
  push();
  lend(kFar);
  EXPECT_THAT(push()[kFar], ElementsAre(2));
}

TEST_F(OwnedTasksTest, AnIdleWorkerGoesBackSoonWhereTasksOfAnotherShapeWait) {
  add(1);
  lend(kFirst);
  push();
  ASSERT_TRUE(result(1));
  add(2, Shape{2, NodeId{-1}});
  while (sut.next_word(now)) continue;
  ASSERT_TRUE(sut.next_deadline());
  EXPECT_EQ(*sut.next_deadline(), now + milliseconds(10));
  now += milliseconds(10);
  const auto word = sut.next_word(now);
  ASSERT_TRUE(word);
  EXPECT_THAT(word->returned, ElementsAre(kFirst));
}

TEST_F(OwnedTasksTest, ManyShapesAreServedOneAfterTheOther) {
  for (std::uint64_t id = 1; id <= 1000; ++id) {
    const Shape shape{1, NodeId{-1}, id};
    const WorkerId worker = worker_id(NodeId{0}, static_cast<std::uint32_t>(id));
    add(id, shape);
    const auto word = sut.next_word(now);
    ASSERT_TRUE(word);
    ASSERT_EQ(word->shape, shape);
    lend(worker, shape);
    ASSERT_THAT(push()[worker], ElementsAre(id));
    ASSERT_TRUE(result(id));
    now += std::chrono::seconds(1);
    const auto back = sut.next_word(now);
    ASSERT_TRUE(back);
    ASSERT_THAT(back->returned, ElementsAre(worker));
    ASSERT_EQ(back->workers, 0u);
  }
  EXPECT_EQ(sut.shapes(), 1u);
}

TEST_F(OwnedTasksTest, SpreadTasksWhoseNodeIsRefusedGoToAnyAtOnce) {
  add(1, spread_on(7));
  ASSERT_TRUE(sut.next_word(now));
  EXPECT_THAT(sut.on_refused(spread_on(7)), IsEmpty());
  const auto word = sut.next_word(now);
  ASSERT_TRUE(word);
  EXPECT_EQ(word->shape, kPlain);
  EXPECT_THAT(sut.on_refused(kPlain), SizeIs(1)) << "no node can run it";
}

TEST_F(OwnedTasksTest, OneThatIsQueuedAndCancelledIsOver) {
  for (std::uint64_t id = 1; id <= 3; ++id) add(id);
  const auto with = sut.cancel(TaskId{2});
  ASSERT_TRUE(with);
  EXPECT_EQ(with->worker, WorkerId{});
  EXPECT_THAT(sut.take_cancelled(), SizeIs(1));
  EXPECT_FALSE(sut.cancel(TaskId{2}));
  lend(kFirst);
  EXPECT_THAT(push()[kFirst], ElementsAre(1));
  result(1);
  EXPECT_THAT(push()[kFirst], ElementsAre(3));
  EXPECT_THAT(sut.take_cancelled(), IsEmpty());
}

TEST_F(OwnedTasksTest, OneThatIsUnderWayAndCancelledIsNeverRunAgain) {
  for (std::uint64_t id = 1; id <= 3; ++id) add(id, 5);
  lend(kFirst);
  push();
  result(1);
  EXPECT_THAT(push()[kFirst], ElementsAre(2, 3));
  for (const std::uint64_t id : {2, 3}) {
    const auto with = sut.cancel(TaskId{id});
    ASSERT_TRUE(with);
    EXPECT_EQ(with->worker, kFirst);
    EXPECT_TRUE(with->by_line);
  }
  EXPECT_THAT(sut.take_cancelled(), IsEmpty()) << "the worker answers";
  sut.on_unbegun(TaskId{3}, now);
  EXPECT_THAT(sut.take_cancelled(), SizeIs(1));
  EXPECT_THAT(sut.on_gone(kFirst), IsEmpty());
  EXPECT_THAT(sut.take_cancelled(), SizeIs(1));
  EXPECT_EQ(sut.size(), 0u);
  EXPECT_TRUE(sut.has_room());
}

TEST_F(OwnedTasksTest, OneThatAnswersThoughItIsCancelledHasItsResult) {
  add(1);
  lend(kFirst);
  push();
  sut.cancel(TaskId{1});
  EXPECT_TRUE(result(1));
  EXPECT_THAT(sut.take_cancelled(), IsEmpty());
}

/// Random lives: workers come, answer, give back, are asked back, lose their lines and die. Every task ends once; one
/// that must not be run again is begun by one worker only.
TEST(OwnedTasks, EveryTaskEndsOnceWhateverHappens) {
  for (unsigned seed = 0; seed < (kSanitized ? 60 : 300); ++seed) {
    std::mt19937 random(seed);
    const auto upto = [&](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random); };
    OwnedTasks sut;
    Instant now{std::chrono::hours(1)};
    std::uint64_t next_task = 1;
    std::uint32_t next_worker = 1;
    std::map<WorkerId, std::vector<TaskId>> workers;  // What each has been given and has not answered, in order.
    std::map<TaskId, int> begun, ended, retries;
    std::set<TaskId> cancelled;
    const auto begin = [&](WorkerId worker) {  // The worker runs its tasks in order: the first one has begun.
      if (!workers[worker].empty()) begun.try_emplace(workers[worker].front(), 0);
    };
    const auto push = [&] {
      while (auto one = sut.next(now)) {
        ASSERT_TRUE(workers.contains(one->worker)) << seed;
        workers[one->worker].push_back(one->task);
      }
      while (auto word = sut.next_word(now)) {
        for (const WorkerId worker : word->returned) {
          ASSERT_THAT(workers.at(worker), IsEmpty()) << seed << ": one is given back with tasks";
          workers.erase(worker);
        }
      }
    };
    const auto any_shape = [&] {
      const auto kind = upto(4);  // Two kinds for any node, and those spread over two.
      return kind < 2 ? Shape{static_cast<float>(kind), NodeId{-1}}
                      : Shape{1, NodeId{static_cast<std::int32_t>(kind - 2)}, 0, true};
    };
    const auto any = [&] { return std::next(workers.begin(), upto(static_cast<unsigned>(workers.size())))->first; };
    const auto end_cancelled = [&] {
      for (const auto& over : sut.take_cancelled()) {
        ++ended[over->task()];
        EXPECT_TRUE(cancelled.contains(over->task())) << seed;
      }
    };
    const auto die = [&](WorkerId worker) {
      if (!workers[worker].empty()) ++begun[workers[worker].front()];
      workers.erase(worker);
      for (const auto& failed : sut.on_gone(worker)) {
        const TaskId task = failed.result->task();
        ++ended[task];
        EXPECT_EQ(begun[task], retries[task] + 1) << seed;
        EXPECT_FALSE(cancelled.contains(task)) << seed;
      }
      end_cancelled();
    };
    for (int step = 0; step < 400; ++step) {
      now += std::chrono::microseconds(upto(3000));
      if (upto(10) == 0 && next_task > 1) {
        const TaskId task{1 + upto(static_cast<unsigned>(next_task - 1))};
        const auto with = sut.cancel(task);
        EXPECT_EQ(with.has_value(), !ended.contains(task)) << seed;
        if (with) cancelled.insert(task);
        end_cancelled();
        EXPECT_EQ(ended.contains(task), !with || with->worker.value == 0) << seed;
      }
      switch (upto(8)) {
        case 0:
        case 1: {
          const TaskId task{next_task++};
          retries[task] = static_cast<int>(upto(3));
          sut.add(task, any_shape(), {retries[task]}, OwnedTasks::Frame(upto(20) == 0 ? 1 << 16 : 64),
                  std::make_shared<PendingResult>(task));
          break;
        }
        case 2:
          if (workers.size() < 4) {
            const WorkerId worker = worker_id(NodeId{static_cast<std::int32_t>(upto(2))}, next_worker++);
            workers[worker];
            auto shape = any_shape();
            if (shape.spread) shape.node = node_of(worker);
            sut.on_lent(worker, shape, upto(2) == 0, now);
          }
          break;
        case 3:
          sut.on_recalled(Shape{1, NodeId{-1}}, NodeId{0}, 1);
          if (upto(4) == 0) {
            EXPECT_THAT(sut.on_refused(Shape{1, NodeId{1}, 0, true}), IsEmpty()) << seed << ": there are other nodes";
          }
          break;
        case 4:
          if (!workers.empty() && upto(4) == 0) die(any());
          break;
        case 5:
          if (!workers.empty()) {
            auto& tasks = workers[any()];  // None of them has begun where the first one is given back, too.
            for (const std::size_t left = upto(2); tasks.size() > left;) {
              sut.on_unbegun(tasks.back(), now);
              end_cancelled();
              tasks.pop_back();
            }
          }
          break;
        default:
          if (!workers.empty()) {
            const WorkerId worker = any();
            begin(worker);
            auto& tasks = workers[worker];
            if (tasks.empty()) break;
            const TaskId task = tasks.front();
            tasks.erase(tasks.begin());
            ASSERT_TRUE(sut.on_result(task, std::chrono::microseconds(1 + upto(500)), now)) << seed;
            ++ended[task];
          }
      }
      push();
    }
    // The end: whoever is there answers all.
    for (const float cpus : {0.0F, 1.0F}) {
      const WorkerId worker = worker_id(NodeId{0}, next_worker++);
      workers[worker];
      sut.on_lent(worker, Shape{cpus, NodeId{-1}}, true, now);
    }
    for (int round = 0; round < 2000 && sut.size() > 0; ++round) {
      push();
      for (auto& [worker, tasks] : std::map(workers)) {
        if (tasks.empty() || !workers.contains(worker)) continue;
        workers[worker].erase(workers[worker].begin());
        ASSERT_TRUE(sut.on_result(tasks.front(), std::chrono::microseconds(10), now));
        ++ended[tasks.front()];
      }
      now += milliseconds(1);
      for (const float cpus : {0.0F, 1.0F}) {  // What was asked back is lent again.
        const WorkerId worker = worker_id(NodeId{0}, next_worker++);
        workers[worker];
        sut.on_lent(worker, Shape{cpus, NodeId{-1}}, true, now);
      }
    }
    EXPECT_EQ(sut.size(), 0u) << seed;
    EXPECT_EQ(ended.size(), retries.size()) << seed;
    for (const auto& [task, times] : ended) EXPECT_EQ(times, 1) << seed;
  }
}

}  // namespace
}  // namespace paceline::actors
