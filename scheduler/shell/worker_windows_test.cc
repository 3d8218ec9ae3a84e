#include "scheduler/shell/worker_windows.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

namespace paceline::scheduler {
namespace {

class WorkerWindowsTest : public ::testing::Test {
 protected:
  void add(int rank) {
    auto window = memory::Window::create({.elements = 1, .dtype = memory::Dtype::f64, .buffers = 4});
    auto control = memory::ControlPage::create();
    ASSERT_TRUE(window && control);
    sut.add(Rank{rank}, {std::move(*window), std::move(*control)});
  }
  const memory::ControlPage::Words& words(int rank) { return sut.at(Rank{rank}).control.words(); }

  WorkerWindows sut;
};

TEST_F(WorkerWindowsTest, WhoJoinsBeforeAnythingIsSaidIsToldNothing) {
  add(0);
  EXPECT_EQ(words(0).abandoned, -1);
  EXPECT_EQ(words(0).executed, -1);
  EXPECT_EQ(words(0).hold, -1);
  EXPECT_EQ(words(0).last, INT64_MAX);
}

// Else it would wait at the job's end for an averaging that was long done.
TEST_F(WorkerWindowsTest, WhoJoinsLateIsToldWhatTheOthersWere) {
  add(0);
  sut.abandon(Version{7});
  sut.set_executed(Version{7});
  sut.hold(Version{7});
  sut.set_last(Version{7});
  add(1);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(words(rank).abandoned, 7);
    EXPECT_EQ(words(rank).executed, 7);
    EXPECT_EQ(words(rank).hold, 7);
    EXPECT_EQ(words(rank).last, 7);
  }
}

TEST_F(WorkerWindowsTest, AHoldEndsForAllAndForThoseWhoJoinLater) {
  add(0);
  sut.hold(Version{7});
  sut.release(Version{6});
  EXPECT_EQ(words(0).hold, 7) << "that was another's";
  sut.release(Version{7});
  add(1);
  for (const int rank : {0, 1}) EXPECT_EQ(words(rank).hold, -1);
}

TEST_F(WorkerWindowsTest, WhatIsAbandonedStaysSo) {
  add(0);
  sut.abandon(Version{7});
  sut.abandon(Version{6});
  EXPECT_EQ(words(0).abandoned, 7);
}

}  // namespace
}  // namespace paceline::scheduler
