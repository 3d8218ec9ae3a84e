#include "scheduler/task_graph.h"

#include <gtest/gtest.h>

namespace paceline::scheduler {
namespace {

TaskId id(std::uint64_t v) { return TaskId{v}; }

TaskGraph::Task task(std::uint64_t v, std::vector<TaskId> dependencies = {}, TaskKind kind = TaskKind::averaging) {
  return {.id = id(v), .kind = kind, .dependencies = std::move(dependencies)};
}

TEST(TaskGraph, GivesOutReadyTasksInTheOrderTheyWereAdded) {
  TaskGraph sut({});
  for (std::uint64_t v : {7, 3, 5}) EXPECT_EQ(sut.add(task(v)), TaskState::ready);
  for (std::uint64_t v : {7, 3, 5}) {
    EXPECT_EQ(sut.next_ready(TaskKind::averaging), id(v));
    ASSERT_TRUE(sut.lease(id(v)));
  }
  EXPECT_EQ(sut.next_ready(TaskKind::averaging), std::nullopt);
}

TEST(TaskGraph, ADiamondBecomesReadyLevelByLevel) {
  TaskGraph sut({});
  ASSERT_TRUE(sut.add(task(1)));
  ASSERT_EQ(sut.add(task(2, {id(1)})), TaskState::waiting);
  ASSERT_TRUE(sut.add(task(3, {id(1), id(1)})));
  ASSERT_TRUE(sut.add(task(4, {id(2), id(3)})));
  ASSERT_TRUE(sut.lease(id(1)));
  ASSERT_TRUE(sut.on_done(id(1)));
  EXPECT_EQ(sut.next_ready(TaskKind::averaging), id(2));
  for (std::uint64_t v : {2, 3}) ASSERT_TRUE(sut.lease(id(v)));
  ASSERT_TRUE(sut.on_done(id(3)));
  EXPECT_EQ(sut.state(id(4)), TaskState::waiting);
  ASSERT_TRUE(sut.on_done(id(2)));
  EXPECT_EQ(sut.state(id(4)), TaskState::ready);
  EXPECT_EQ(sut.add(task(5, {id(1), id(2)})), TaskState::ready);
}

TEST(TaskGraph, OneThatIsForgottenIsNotGivenOutAndWhatDependsOnItWaits) {
  TaskGraph sut({});
  ASSERT_TRUE(sut.add(task(1)));
  ASSERT_TRUE(sut.add(task(2, {id(1)})));
  sut.forget(id(1));
  EXPECT_EQ(sut.next_ready(TaskKind::averaging), std::nullopt);
  EXPECT_EQ(sut.state(id(2)), TaskState::waiting);
  sut.forget(id(2));
  EXPECT_EQ(sut.size(), 0u);
}

TEST(TaskGraph, AveragingsDependOnComputeTasks) {
  TaskGraph sut({});
  for (std::uint64_t v : {1, 2}) ASSERT_TRUE(sut.add(task(v, {}, TaskKind::compute)));
  ASSERT_TRUE(sut.add(task(3, {id(1), id(2)})));
  for (std::uint64_t v : {1, 2}) {
    EXPECT_EQ(sut.next_ready(TaskKind::averaging), std::nullopt);
    EXPECT_EQ(sut.next_ready(TaskKind::compute), id(v));
    ASSERT_TRUE(sut.lease(id(v)));
    ASSERT_TRUE(sut.on_done(id(v)));
  }
  EXPECT_EQ(sut.next_ready(TaskKind::averaging), id(3));
}

TEST(TaskGraph, RefusesWhatItCannotHold) {
  TaskGraph sut({.tasks_max = 2});
  EXPECT_EQ(sut.add(task(1, {id(9)})).error().kind, ErrorKind::invalid);
  ASSERT_TRUE(sut.add(task(1)));
  EXPECT_EQ(sut.add(task(1)).error().kind, ErrorKind::invalid);
  ASSERT_TRUE(sut.add(task(2)));
  EXPECT_EQ(sut.add(task(3)).error().kind, ErrorKind::overloaded);
  EXPECT_EQ(sut.lease(id(8)).error().kind, ErrorKind::not_found);
  EXPECT_EQ(sut.on_done(id(2)).error().kind, ErrorKind::stale);
  EXPECT_EQ(sut.on_done(id(8)).error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace paceline::scheduler
