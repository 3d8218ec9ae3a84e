#include "algorithms/cluster/training/driver_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DriverEventsTest : public ::testing::Test {
 protected:
  bool send(const JobDriver& driver, const DriverEvents::Event& event) {
    if (cut_off_) return false;
    sent_.push_back(to_string(driver.node) + ":" + std::to_string(event.number) + " " + event.json);
    return true;
  }
  std::vector<std::string> taken() { return std::exchange(sent_, {}); }

  bool cut_off_ = false;
  std::vector<std::string> sent_;
  DriverEvents sut_{{NodeId{0}, "driver/1"},
                    [this](const auto& driver, const auto& event) { return send(driver, event); }};
};

TEST_F(DriverEventsTest, EventsAreNumberedAndSentAtOnce) {
  sut_.tell(1);
  sut_.tell(2);
  EXPECT_THAT(taken(), ElementsAre("0:1 1", "0:2 2"));
}

TEST_F(DriverEventsTest, WhatCouldNotBeSentFollows) {
  sut_.tell(1);
  cut_off_ = true;
  sut_.tell(2);
  cut_off_ = false;
  sut_.tell(3);
  EXPECT_THAT(taken(), ElementsAre("0:1 1", "0:2 2", "0:3 3"));
}

TEST_F(DriverEventsTest, ADriverWithAnotherAgentIsToldWhatItHasNotHeard) {
  for (const int event : {1, 2, 3}) sut_.tell(event);
  (void)taken();
  sut_.on_driven({NodeId{4}, "driver/1", 9, 0, 1}, 1);
  EXPECT_THAT(taken(), ElementsAre("4:2 2", "4:3 3"));
  EXPECT_EQ(sut_.driver().node, NodeId{4});
  sut_.tell(4);
  EXPECT_THAT(taken(), ElementsAre("4:4 4"));
  sut_.on_driven({NodeId{4}, "driver/1", 9, 0, 1}, 0);
  sut_.on_driven({NodeId{0}, "driver/1"}, 0);
  EXPECT_THAT(taken(), IsEmpty()) << "that is known, or was before";
  EXPECT_EQ(sut_.driver().node, NodeId{4});
}

TEST_F(DriverEventsTest, SendingMayHaveMoreToTell) {
  int more = 2;
  DriverEvents* events = nullptr;
  DriverEvents sut{{NodeId{0}, "driver/1"}, [&](const JobDriver& driver, const DriverEvents::Event& event) {
                     (void)send(driver, event);
                     if (more-- > 0) events->tell("more");
                     return true;
                   }};
  events = &sut;
  sut.tell(1);
  EXPECT_THAT(taken(), ElementsAre("0:1 1", "0:2 \"more\"", "0:3 \"more\""));
}

TEST_F(DriverEventsTest, OnlyTheNewestAreKept) {
  for (std::size_t event = 0; event < DriverEvents::kEventsMax + 10; ++event) sut_.tell(event);
  (void)taken();
  sut_.on_driven({NodeId{4}, "driver/1", 9, 0, 1}, 0);
  EXPECT_EQ(taken().size(), DriverEvents::kEventsMax);
  const std::string much(DriverEvents::kBytesMax / 3, 'x');
  for (int event = 0; event < 5; ++event) sut_.tell(much);
  (void)taken();
  sut_.on_driven({NodeId{5}, "driver/1", 9, 0, 2}, 0);
  EXPECT_EQ(taken().size(), 2U);
  sut_.tell(std::string(2 * DriverEvents::kBytesMax, 'x'));
  EXPECT_EQ(taken().size(), 1U) << "the last one always";
}

}  // namespace
}  // namespace paceline::cluster
