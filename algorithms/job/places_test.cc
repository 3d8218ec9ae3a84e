#include "algorithms/job/places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Two on each of two nodes, all there.
Places four() { return Places({0, 0, 1, 1}, {}); }

TEST(PlacesTest, NobodyWantsAnything) {
  Places sut({0, 0, 0}, {1, 2});
  EXPECT_EQ(sut.taken(), 1);
  const auto steps = sut.next();
  EXPECT_THAT(steps.start, IsEmpty());
  EXPECT_THAT(steps.ask, IsEmpty());
}

TEST(PlacesTest, WorkersAreStartedWhereThereAreFewest) {
  Places sut({0, 0, 0, 1, 1, 1}, {1, 2, 4, 5});
  sut.want(5);
  EXPECT_THAT(sut.next().start, ElementsAre(1, 4, 2));
  EXPECT_THAT(sut.next().start, IsEmpty());
  EXPECT_EQ(sut.taken(), 5);
}

TEST(PlacesTest, NoMoreThanThereArePlacesFor) {
  Places sut({0, 0}, {1});
  sut.want(7);
  EXPECT_THAT(sut.next().start, ElementsAre(1));
}

TEST(PlacesTest, WorkersLeaveWhereThereAreMost) {
  Places sut({0, 0, 0, 1, 1}, {});
  sut.want(3);
  EXPECT_THAT(sut.next().ask, ElementsAre(2, 4));
  EXPECT_EQ(sut.taken(), 3);
}

TEST(PlacesTest, ANodeKeepsOne) {
  Places sut = four();
  sut.want(1);
  EXPECT_THAT(sut.next().ask, ElementsAre(1, 3));
  sut = Places({0, 0, 0}, {});
  sut.want(0);
  EXPECT_THAT(sut.next().ask, ElementsAre(1, 2));
}

/// Who is on the way may not come.
TEST(PlacesTest, TheOnlyOneThatIsThereStays) {
  Places sut({0, 0}, {1});
  sut.want(2);
  ASSERT_THAT(sut.next().start, ElementsAre(1));
  sut.want(1);
  EXPECT_THAT(sut.next().ask, IsEmpty());
  sut.on_there(1);
  EXPECT_THAT(sut.next().ask, ElementsAre(1));
}

TEST(PlacesTest, TheyAreAskedUntilTheyHaveLeft) {
  Places sut = four();
  sut.want(3);
  ASSERT_THAT(sut.next().ask, ElementsAre(3));
  EXPECT_TRUE(sut.is_leaving(3));
  EXPECT_THAT(sut.next().ask, ElementsAre(3));
  sut.on_left(3, false, true);
  EXPECT_THAT(sut.next().ask, IsEmpty());
  EXPECT_TRUE(sut.is_leaving(3));
}

/// Its process is still there.
TEST(PlacesTest, APlaceIsVacantWhenItsWorkIsOver) {
  Places sut = four();
  sut.want(3);
  (void)sut.next();
  sut.on_over(3);  // Its agent has not said yet that it has left.
  EXPECT_FALSE(sut.is_vacant(3));
  sut.on_left(3, false, true);
  sut.want(4);
  EXPECT_THAT(sut.next().start, IsEmpty());
  sut.on_over(3);
  EXPECT_TRUE(sut.is_vacant(3));
  EXPECT_THAT(sut.next().start, ElementsAre(3));
}

/// Another one would end as well.
TEST(PlacesTest, WhoEndsBeforeItIsThereIsWantedNoMore) {
  Places sut({0, 0, 0}, {1, 2});
  sut.want(3);
  ASSERT_THAT(sut.next().start, ElementsAre(1, 2));
  EXPECT_TRUE(sut.is_on_its_way(2));
  sut.on_over(2);
  EXPECT_TRUE(sut.is_vacant(2));
  EXPECT_EQ(sut.wanted(), 2);
  EXPECT_THAT(sut.next().start, IsEmpty());
  sut.want(3);
  EXPECT_THAT(sut.next().start, ElementsAre(2));
}

TEST(PlacesTest, WhoComesBackIsWantedStill) {
  Places sut = four();
  sut.want(4);
  sut.on_left(2, true, false);
  EXPECT_THAT(sut.next().start, IsEmpty());
  sut.on_there(2);
  EXPECT_EQ(sut.taken(), 4);
}

/// It would only be away again.
TEST(PlacesTest, WhoIsAwayIsNotAskedToLeave) {
  Places sut({0, 0, 0}, {});
  sut.on_left(2, true, false);
  sut.want(2);
  EXPECT_THAT(sut.next().ask, ElementsAre(1));
}

TEST(PlacesTest, WhoIsLostIsWantedNoMoreUntilSomebodyWantsMore) {
  Places sut = four();
  sut.want(4);
  sut.on_left(2, false, false);
  EXPECT_EQ(sut.wanted(), 3);
  EXPECT_THAT(sut.next().start, IsEmpty());
  sut.want(4);
  EXPECT_THAT(sut.next().start, ElementsAre(2));
}

/// Who dies on the way out is not lost: it was not wanted.
TEST(PlacesTest, WhoWasToLeaveAndIsLostIsMissedByNobody) {
  Places sut = four();
  sut.want(3);
  ASSERT_THAT(sut.next().ask, ElementsAre(3));
  sut.on_left(3, false, false);
  EXPECT_EQ(sut.wanted(), 3);
  EXPECT_THAT(sut.next().ask, IsEmpty());
}

/// It may be killed before it leaves, and come back.
TEST(PlacesTest, WhoWasToLeaveAndComesBackIsAskedAgain) {
  Places sut = four();
  sut.want(3);
  ASSERT_THAT(sut.next().ask, ElementsAre(3));
  sut.on_left(3, true, false);
  sut.on_there(3);
  EXPECT_THAT(sut.next().ask, ElementsAre(3));
}

TEST(PlacesTest, NobodyIsStartedOnANodeThatIsLost) {
  Places sut({0, 0, 1, 1}, {1, 3});
  sut.want(2);
  sut.on_node_lost(1);
  EXPECT_EQ(sut.wanted(), 1);
  sut.want(4);
  EXPECT_THAT(sut.next().start, ElementsAre(1));
}

TEST(PlacesTest, WhatIsSaidOfOthersIsNotHeard) {
  Places sut = four();
  sut.want(4);
  for (const int rank : {-1, 4}) {
    sut.on_left(rank, false, false);
    sut.on_there(rank);
    sut.on_over(rank);
  }
  EXPECT_EQ(sut.wanted(), 4);
  sut = Places({0, 0}, {7, -1});
  EXPECT_EQ(sut.taken(), 2);
}

}  // namespace
}  // namespace paceline::job
