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

TEST(HeardEvents, OfWhatTheNextLeaderSaysAgainNothingCountsTwice) {
  HeardEvents sut;
  const nlohmann::json at_ten{{"event", "evaluated"}, {"update", 10}, {"value", 0.5}};
  EXPECT_FALSE(sut.is_said_again(at_ten));
  EXPECT_TRUE(sut.is_said_again(at_ten));
  EXPECT_FALSE(sut.is_said_again({{"event", "evaluated"}, {"update", 20}}));
  EXPECT_TRUE(sut.is_said_again(at_ten));
  EXPECT_TRUE(sut.is_said_again({{"event", "evaluated"}, {"update", 20}}));
  const nlohmann::json reached{{"event", "stopping"}, {"text", "accuracy reached 0.9"}};
  EXPECT_FALSE(sut.is_said_again(reached));
  EXPECT_TRUE(sut.is_said_again(reached));
  EXPECT_FALSE(sut.is_said_again({{"event", "stopping"}, {"text", "interrupted"}}));
  const nlohmann::json changed{{"event", "changed"}, {"update", 15}};
  EXPECT_FALSE(sut.is_said_again(changed));
  EXPECT_TRUE(sut.is_said_again(changed));
  const nlohmann::json warning{{"event", "warning"}, {"text", "x"}};
  EXPECT_FALSE(sut.is_said_again(warning));
  EXPECT_FALSE(sut.is_said_again(warning));
}

TEST(HeardEvents, TheHeadsHaveNoNumber) {
  HeardEvents sut;
  EXPECT_EQ(sut.on_event(NodeId{0}, 0, 0), Event::next);
  EXPECT_EQ(sut.on_event(NodeId{0}, 0, 0), Event::next);
  EXPECT_EQ(json_text(sut.list()), "[]");
}

}  // namespace
}  // namespace paceline::job
