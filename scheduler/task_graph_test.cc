#include "scheduler/task_graph.h"

#include <gmock/gmock.h>

namespace paceline::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TaskId id(std::uint64_t v) { return TaskId{v}; }

TaskGraph::Task task(std::uint64_t v, std::vector<TaskId> dependencies = {}, TaskKind kind = TaskKind::task,
                     double cpus = 1) {
  return {.id = id(v), .kind = kind, .dependencies = std::move(dependencies), .cpus = cpus};
}

TEST(TaskGraph, GivesOutReadyTasksInTheOrderTheyWereAdded) {
  TaskGraph sut({});
  for (std::uint64_t v : {7, 3, 5}) EXPECT_EQ(sut.add(task(v)), TaskState::ready);
  for (std::uint64_t v : {7, 3, 5}) {
    EXPECT_EQ(sut.next_ready(1), id(v));
    ASSERT_TRUE(sut.lease(id(v)));
  }
  EXPECT_EQ(sut.next_ready(1), std::nullopt);
}

TEST(TaskGraph, ADiamondBecomesReadyLevelByLevel) {
  TaskGraph sut({});
  ASSERT_TRUE(sut.add(task(1)));
  ASSERT_EQ(sut.add(task(2, {id(1)})), TaskState::waiting);
  ASSERT_TRUE(sut.add(task(3, {id(1), id(1)})));
  ASSERT_TRUE(sut.add(task(4, {id(2), id(3)})));
  ASSERT_TRUE(sut.lease(id(1)));
  EXPECT_THAT(sut.on_done(id(1))->ready, ElementsAre(id(2), id(3)));
  for (std::uint64_t v : {2, 3}) ASSERT_TRUE(sut.lease(id(v)));
  EXPECT_THAT(sut.on_done(id(3))->ready, IsEmpty());
  EXPECT_THAT(sut.on_done(id(2))->ready, ElementsAre(id(4)));
  EXPECT_EQ(sut.add(task(5, {id(1), id(2)})), TaskState::ready);
}

TEST(TaskGraph, AFailureReachesAllDependantsWithItsText) {
  TaskGraph sut({});
  ASSERT_TRUE(sut.add(task(1)));
  ASSERT_TRUE(sut.add(task(2, {id(1)})));
  ASSERT_TRUE(sut.add(task(3, {id(2)})));
  ASSERT_TRUE(sut.add(task(9)));
  ASSERT_TRUE(sut.lease(id(1)));
  EXPECT_THAT(sut.on_failed(id(1), {ErrorKind::internal, "division by zero"})->failed, ElementsAre(id(2), id(3)));
  EXPECT_EQ(sut.state(id(3)), TaskState::failed);
  EXPECT_EQ(sut.error(id(3))->text, "division by zero");
  EXPECT_EQ(sut.state(id(9)), TaskState::ready);
  EXPECT_EQ(sut.add(task(4, {id(9), id(3)})), TaskState::failed);
  EXPECT_EQ(sut.error(id(4))->text, "division by zero");
}

TEST(TaskGraph, ACancelledTaskIsNotGivenOutAndItsDependantsFail) {
  TaskGraph sut({});
  ASSERT_TRUE(sut.add(task(1)));
  ASSERT_TRUE(sut.add(task(2, {id(1)})));
  EXPECT_THAT(sut.cancel(id(1))->failed, ElementsAre(id(2)));
  EXPECT_EQ(sut.next_ready(8), std::nullopt);
  EXPECT_EQ(sut.error(id(2))->kind, ErrorKind::cancelled);
  EXPECT_EQ(sut.cancel(id(1)).error().kind, ErrorKind::stale);
}

TEST(TaskGraph, ALeaseThatIsGivenBackKeepsItsPlace) {
  TaskGraph sut({});
  for (std::uint64_t v : {1, 2}) ASSERT_TRUE(sut.add(task(v)));
  ASSERT_TRUE(sut.lease(id(1)));
  ASSERT_TRUE(sut.give_back(id(1)));
  EXPECT_EQ(sut.next_ready(1), id(1));
}

TEST(TaskGraph, AveragingAndComputeAreNodesLikeOthers) {
  TaskGraph sut({});
  for (std::uint64_t v : {1, 2}) ASSERT_TRUE(sut.add(task(v, {}, TaskKind::compute)));
  ASSERT_TRUE(sut.add(task(3, {id(1), id(2)}, TaskKind::averaging, 0)));
  ASSERT_TRUE(sut.add(task(4, {}, TaskKind::task, 2)));
  for (std::uint64_t v : {1, 2}) {
    ASSERT_TRUE(sut.lease(id(v)));
    ASSERT_TRUE(sut.on_done(id(v)));
  }
  EXPECT_EQ(sut.next_ready(0), id(3));
  EXPECT_EQ(sut.next_ready(1, TaskKind::task), std::nullopt);  // Needs two cores.
  EXPECT_EQ(sut.next_ready(2, TaskKind::task), id(4));
}

TEST(TaskGraph, RefusesWhatItCannotHold) {
  TaskGraph sut({.tasks_max = 2, .dependencies_max = 1});
  EXPECT_EQ(sut.add(task(1, {id(9)})).error().kind, ErrorKind::invalid);
  ASSERT_TRUE(sut.add(task(1)));
  EXPECT_EQ(sut.add(task(1)).error().kind, ErrorKind::invalid);
  ASSERT_TRUE(sut.add(task(2)));
  EXPECT_EQ(sut.add(task(3)).error().kind, ErrorKind::overloaded);
  EXPECT_EQ(sut.forget(id(1)).error().kind, ErrorKind::stale);
  ASSERT_TRUE(sut.cancel(id(1)));
  ASSERT_TRUE(sut.forget(id(1)));
  EXPECT_EQ(sut.add(task(3, {id(2), id(2)})).error().kind, ErrorKind::invalid);
  EXPECT_EQ(sut.on_done(id(2)).error().kind, ErrorKind::stale);
  EXPECT_EQ(sut.on_done(id(8)).error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace paceline::scheduler
