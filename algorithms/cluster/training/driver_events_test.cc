#include "algorithms/cluster/training/driver_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace paceline::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DriverEventsTest : public ::testing::Test {
 protected:
  static DriverEvents::Write words(const std::string& text) {
    return [text](auto event) { event.initWarning().setText(text); };
  }
  bool send(const JobDriver& driver, wire::Message& message) {
    if (cut_off_) return false;
    const auto event = message.root().getJobEvent().asReader();
    EXPECT_EQ(event.getJob(), 3U);
    EXPECT_EQ(event.getNode(), 1);
    EXPECT_EQ(wire::text(event.getTo()), driver.peer);
    oldest_ = event.getOldest();
    sent_.push_back(to_string(driver.node) + ":" + std::to_string(event.getNumber()) + " " +
                    (event.isWarning() ? wire::text(event.getWarning().getText()) : ""));
    return true;
  }
  std::vector<std::string> taken() { return std::exchange(sent_, {}); }

  bool cut_off_ = false;
  std::uint64_t oldest_ = 0;
  std::vector<std::string> sent_;
  DriverEvents sut_{JobId{3}, NodeId{1}, {NodeId{0}, "driver/1"}, [this](const auto& driver, auto& message) {
                      return send(driver, message);
                    }};
};

TEST_F(DriverEventsTest, EventsAreNumberedAndSentAtOnce) {
  sut_.tell(words("a"));
  sut_.tell(words("b"));
  EXPECT_THAT(taken(), ElementsAre("0:1 a", "0:2 b"));
  EXPECT_EQ(oldest_, 1U);
}

TEST_F(DriverEventsTest, WhatCouldNotBeSentFollows) {
  sut_.tell(words("a"));
  cut_off_ = true;
  sut_.tell(words("b"));
  cut_off_ = false;
  sut_.tell(words("c"));
  EXPECT_THAT(taken(), ElementsAre("0:1 a", "0:2 b", "0:3 c"));
}

TEST_F(DriverEventsTest, OneThatIsBackTellsNothingThatCountsAsTold) {
  DriverEvents sut{JobId{3},
                   NodeId{1},
                   {NodeId{0}, "driver/1"},
                   [this](const auto& driver, auto& message) { return send(driver, message); },
                   2};
  sut.on_driven({NodeId{2}, "driver/1", 9, 0, 1}, 70);
  EXPECT_THAT(taken(), IsEmpty());
  sut.tell(words("a"));
  EXPECT_THAT(taken(), ElementsAre("2:2199023255553 a"));
  EXPECT_EQ(oldest_, 2199023255553U) << "none is missed";
  sut.on_driven({NodeId{4}, "driver/1", 9, 0, 2}, 77);
  EXPECT_THAT(taken(), ElementsAre("4:2199023255553 a"));
}

TEST_F(DriverEventsTest, ADriverWithAnotherAgentIsToldWhatItHasNotHeard) {
  for (const char* event : {"a", "b", "c"}) sut_.tell(words(event));
  (void)taken();
  sut_.on_driven({NodeId{4}, "driver/1", 9, 0, 1}, 1);
  EXPECT_THAT(taken(), ElementsAre("4:2 b", "4:3 c"));
  EXPECT_EQ(sut_.driver().node, NodeId{4});
  sut_.tell(words("d"));
  EXPECT_THAT(taken(), ElementsAre("4:4 d"));
  sut_.on_driven({NodeId{4}, "driver/1", 9, 0, 1}, 0);
  sut_.on_driven({NodeId{0}, "driver/1"}, 0);
  EXPECT_THAT(taken(), IsEmpty()) << "that is known, or was before";
  EXPECT_EQ(sut_.driver().node, NodeId{4});
}

TEST_F(DriverEventsTest, SendingMayHaveMoreToTell) {
  int more = 2;
  DriverEvents* events = nullptr;
  DriverEvents sut{JobId{3}, NodeId{1}, {NodeId{0}, "driver/1"}, [&](const JobDriver& driver, wire::Message& message) {
                     (void)send(driver, message);
                     if (more-- > 0) events->tell(words("more"));
                     return true;
                   }};
  events = &sut;
  sut.tell(words("a"));
  EXPECT_THAT(taken(), ElementsAre("0:1 a", "0:2 more", "0:3 more"));
}

TEST_F(DriverEventsTest, OnlyTheNewestAreKept) {
  for (std::size_t event = 0; event < DriverEvents::kEventsMax + 10; ++event) sut_.tell(words("a"));
  (void)taken();
  sut_.on_driven({NodeId{4}, "driver/1", 9, 0, 1}, 0);
  EXPECT_EQ(taken().size(), DriverEvents::kEventsMax);
  EXPECT_EQ(oldest_, 11U);
  const std::string much(DriverEvents::kBytesMax / 3, 'x');
  for (int event = 0; event < 5; ++event) sut_.tell(words(much));
  (void)taken();
  sut_.on_driven({NodeId{5}, "driver/1", 9, 0, 2}, 0);
  EXPECT_EQ(taken().size(), 2U);
  sut_.tell(words(std::string(2 * DriverEvents::kBytesMax, 'x')));
  EXPECT_EQ(taken().size(), 1U) << "the last one always";
}

TEST_F(DriverEventsTest, OfWhatWasSentTheLastMinuteIsKept) {
  const auto progress = [this](std::size_t times) {
    for (std::size_t event = 0; event < times; ++event) sut_.tell([](auto told) { told.initProgress(); });
  };
  sut_.tell(words("a"));
  progress(10);
  sut_.tell(words("b"));
  progress(DriverEvents::kProgressMax - 1);
  (void)taken();
  sut_.on_driven({NodeId{4}, "driver/1", 9, 0, 1}, 0);
  auto told = taken();
  ASSERT_EQ(told.size(), DriverEvents::kProgressMax + 1);
  EXPECT_EQ(told[0], "4:11 ");
  EXPECT_EQ(told[1], "4:12 b");
  EXPECT_EQ(oldest_, 11U);
  cut_off_ = true;
  progress(2 * DriverEvents::kProgressMax);
  cut_off_ = false;
  sut_.tell(words("c"));
  EXPECT_EQ(taken().size(), 2 * DriverEvents::kProgressMax + 1) << "what could not be sent is kept";
}

}  // namespace
}  // namespace paceline::cluster
