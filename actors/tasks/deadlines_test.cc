#include "actors/tasks/deadlines.h"

#include <gmock/gmock.h>

#include <map>
#include <random>
#include <set>

#include "actors/process_ids.h"
#include "actors/tasks/owned_tasks.h"

namespace paceline::actors {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

PendingResultPtr task(std::uint64_t id) { return std::make_shared<PendingResult>(TaskId{id}); }

class DeadlinesTest : public testing::Test {
 protected:
  std::vector<std::uint64_t> late() {
    std::vector<std::uint64_t> ids;
    for (const auto& one : sut.take_late(now)) ids.push_back(one.result->task().value);
    return ids;
  }
  Instant now{std::chrono::hours(1)};
  Deadlines sut;
};

TEST_F(DeadlinesTest, WhatIsNotOverInTimeIsLateOnce) {
  const auto one = task(1), two = task(2), three = task(3);
  EXPECT_TRUE(sut.add(two, "", milliseconds(20), now));
  EXPECT_TRUE(sut.add(one, "first", milliseconds(10), now));
  EXPECT_FALSE(sut.add(three, "", milliseconds(20), now)) << "another one is next";
  EXPECT_EQ(sut.next(), now + milliseconds(10));
  now += milliseconds(10) - Duration(1);
  EXPECT_THAT(late(), IsEmpty());
  now += Duration(1);
  const auto first = sut.take_late(now);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].result, one);
  EXPECT_EQ(first[0].name, "first");
  EXPECT_EQ(first[0].timeout, milliseconds(10));
  EXPECT_THAT(late(), IsEmpty());
  now += milliseconds(100);
  EXPECT_THAT(late(), ElementsAre(2, 3));
  EXPECT_EQ(sut.next(), std::nullopt);
  EXPECT_EQ(sut.size(), 0u);
}

TEST_F(DeadlinesTest, WhatIsOverIsNotLate) {
  const auto one = task(1), two = task(2);
  auto three = task(3);
  for (const auto& result : {one, two, three}) sut.add(result, "", milliseconds(10), now);
  sut.remove(TaskId{1});
  two->complete(Bytes{});
  three.reset();  // Nobody keeps it.
  sut.remove(TaskId{7});
  now += milliseconds(10);
  EXPECT_THAT(late(), IsEmpty());
  EXPECT_EQ(sut.size(), 0u);
}

TEST_F(DeadlinesTest, AnyTimeoutIsPossible) {
  const auto one = task(1), two = task(2), three = task(3);
  sut.add(one, "", -milliseconds(10), now);
  sut.add(two, "", Duration::zero(), now);
  EXPECT_FALSE(sut.add(three, "", Duration::max(), now));
  EXPECT_THAT(late(), ElementsAre(1, 2));
  EXPECT_GT(*sut.next(), now + std::chrono::hours(24 * 365 * 99));
  EXPECT_TRUE(sut.has(TaskId{3}));
  EXPECT_FALSE(sut.has(TaskId{1}));
}

/// Tasks with timeouts and workers that answer, in virtual time, as the client steps both cores: each future ends once,
/// with its result or as late, also where both happen at the same instant, and nothing is left of it.
TEST(DeadlinesLivesTest, EachTaskEndsOnceAndNothingIsLeft) {
  int at_the_same_time = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const auto upto = [&random](unsigned n) { return static_cast<unsigned>(random() % n); };
    Instant now{std::chrono::hours(1)};
    Deadlines deadlines;
    OwnedTasks tasks;
    std::map<TaskId, PendingResultPtr> futures;
    std::multimap<Instant, TaskId> answers;  // When workers will answer; whole milliseconds, as deadlines are.
    std::set<TaskId> late;
    std::map<TaskId, Instant> due;
    tasks.on_lent(worker_id(NodeId{0}, 1), Shape{}, true, now);
    tasks.on_lent(worker_id(NodeId{0}, 2), Shape{}, true, now);
    const auto end_late = [&] {
      for (const auto& one : deadlines.take_late(now)) {
        const TaskId id = one.result->task();
        EXPECT_EQ(due.at(id), now) << seed;
        EXPECT_TRUE(tasks.cancel(id)) << seed << ": it was not over";
        (void)tasks.take_cancelled();
        EXPECT_TRUE(one.result->complete(fail(ErrorKind::timed_out, "late"))) << seed;
        late.insert(id);
      }
    };
    const auto answer = [&] {
      while (!answers.empty() && answers.begin()->first <= now) {
        const TaskId id = answers.extract(answers.begin()).mapped();
        const bool fails = upto(4) == 0;
        at_the_same_time += due.at(id) == now ? 1 : 0;
        if (fails && tasks.on_error(id, milliseconds(1), now)) {
          EXPECT_FALSE(late.contains(id)) << seed << ": it is run again although it was cancelled";
          continue;
        }
        const auto slot = tasks.on_result(id, milliseconds(1), now);
        deadlines.remove(id);
        ASSERT_TRUE(slot) << seed;
        EXPECT_EQ(slot->complete(Bytes{}), !late.contains(id)) << seed;
      }
    };
    const auto push = [&] {
      while (const auto one = tasks.next(now)) {
        EXPECT_FALSE(late.contains(one->task)) << seed << ": it has not begun, and never will";
        answers.emplace(now + milliseconds(1 + upto(8)), one->task);
      }
    };
    for (std::uint64_t id = 1; id <= 100 || !answers.empty() || tasks.size() > 0; ++id) {
      ASSERT_LT(id, 10'000u) << seed << ": something is left";
      if (id <= 100) {
        const auto result = futures[TaskId{id}] = task(id);
        const auto timeout = milliseconds(1 + upto(20));
        due[TaskId{id}] = now + timeout;
        deadlines.add(result, "", timeout, now);
        tasks.add(TaskId{id}, Shape{}, {static_cast<int>(upto(3)), upto(2) == 0}, OwnedTasks::Frame(64), result);
      }
      push();
      now += milliseconds(1);
      if (upto(2) == 0) {
        end_late();
        answer();
      } else {
        answer();
        end_late();
      }
    }
    for (const auto& [id, result] : futures) {
      ASSERT_TRUE(result->ready()) << seed;
      EXPECT_EQ(result->wait().has_value(), !late.contains(id)) << seed;
    }
    EXPECT_EQ(deadlines.size(), 0u) << seed;
    EXPECT_EQ(tasks.size(), 0u) << seed;
    EXPECT_TRUE(tasks.has_room()) << seed;
  }
  EXPECT_GT(at_the_same_time, 100);
}

}  // namespace
}  // namespace paceline::actors
