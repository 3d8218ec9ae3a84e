#include "algorithms/job/heard_events.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::job {
namespace {

using Event = HeardEvents::Event;

TEST(HeardEvents, NothingCountsTwice) {
  HeardEvents sut;
  EXPECT_EQ(sut.on_event(NodeId{0}, 1, 1), Event::next);
  EXPECT_EQ(sut.on_event(NodeId{0}, 1, 1), Event::known);
  EXPECT_EQ(sut.on_event(NodeId{1}, 1, 1), Event::next) << "each node has numbers of its own";
  EXPECT_EQ(sut.on_event(NodeId{0}, 2, 1), Event::next);
  EXPECT_EQ(json_text(sut.list()), "[[0,2],[1,1]]");
}

TEST(HeardEvents, WhatCanBeToldAgainIsMissed) {
  HeardEvents sut;
  EXPECT_EQ(sut.on_event(NodeId{0}, 3, 1), Event::missed);
  EXPECT_EQ(sut.on_event(NodeId{0}, 3, 2), Event::next) << "the first is nowhere any more";
  EXPECT_EQ(sut.on_event(NodeId{0}, 5, 4), Event::missed);
  EXPECT_EQ(json_text(sut.list()), "[[0,3]]");
}

TEST(HeardEvents, TheHeadsHaveNoNumber) {
  HeardEvents sut;
  EXPECT_EQ(sut.on_event(NodeId{0}, 0, 0), Event::next);
  EXPECT_EQ(sut.on_event(NodeId{0}, 0, 0), Event::next);
  EXPECT_EQ(json_text(sut.list()), "[]");
}

}  // namespace
}  // namespace paceline::job
