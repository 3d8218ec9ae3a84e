#include "algorithms/job/places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::job {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

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

void lose_node(Places& sut, int node, const std::vector<int>& workers) {
  for (const int rank : workers) sut.on_event({{"event", "left"}, {"worker", rank}, {"with_node", true}});
  sut.on_event({{"event", "node_lost"}, {"node", node}});
}

TEST(PlacesTest, ANodeThatIsBackGetsTheWorkersThatItHad) {
  Places sut({0, 0, 0, 1, 1, 1}, {2, 4, 5});
  for (const int times : {1, 2, 3}) {
    lose_node(sut, 1, {3, 4, 5});
    EXPECT_THAT(sut.next().start, IsEmpty());
    sut.on_event({{"event", "node_joined"}, {"node", 1}, {"places", {3, 4, 5}}});
    EXPECT_THAT(sut.next().start, ElementsAre(3)) << times;
    sut.on_there(3);
    sut.on_event({{"event", "node_joined"}, {"node", 1}, {"places", {3, 4, 5}}});
    EXPECT_THAT(sut.next().start, IsEmpty()) << "once";
  }
  sut.want(6);
  EXPECT_THAT(sut.next().start, UnorderedElementsAre(2, 4, 5)) << "what was vacant is";
}

TEST(PlacesTest, WhoWasLostBeforeItsNodeDoesNotComeBackWithIt) {
  Places sut({0, 0, 1, 1}, {});
  sut.on_left(3, false, false);
  lose_node(sut, 1, {2, 3});
  sut.on_node_joined(1, {2, 3});
  EXPECT_THAT(sut.next().start, ElementsAre(2));
}

TEST(PlacesTest, OneThatIsLostAgainBeforeItsWorkersAreThereGetsThemAll) {
  for (const bool over_first : {true, false}) {  // The driver knows that sooner than that the node is lost.
    Places sut({0, 0, 1, 1}, {});
    lose_node(sut, 1, {2, 3});
    lose_node(sut, 1, {2, 3});
    sut.on_node_joined(1, {2, 3});
    ASSERT_THAT(sut.next().start, ElementsAre(2, 3));
    if (over_first)
      for (const int rank : {2, 3}) sut.on_over(rank);
    lose_node(sut, 1, {2, 3});
    sut.on_node_joined(1, {2, 3});
    EXPECT_THAT(sut.next().start, ElementsAre(2, 3)) << over_first;
  }
}

TEST(PlacesTest, OneThatIsDrainedWhileItComesBackGetsNone) {
  Places sut({0, 0, 1, 1}, {});
  lose_node(sut, 1, {2, 3});
  sut.drain_node(1);
  sut.on_node_joined(1, {2, 3});
  sut.want(4);
  EXPECT_THAT(sut.next().start, IsEmpty());
}

TEST(PlacesTest, WhoSaysMeanwhileHowManyAreWantedHasThem) {
  Places sut({0, 0, 1, 1}, {1, 3});
  sut.on_node_lost(1);
  sut.want(2);
  ASSERT_THAT(sut.next().start, ElementsAre(1));
  sut.on_node_joined(1, {2, 3});
  EXPECT_THAT(sut.next().start, IsEmpty());
  sut.want(3);
  EXPECT_THAT(sut.next().start, ElementsAre(2));
}

TEST(PlacesTest, OneThatWasDrainedTakesWorkersAgainWhenItIsBack) {
  Places sut({0, 0, 1, 1}, {1});
  sut.drain_node(1);
  sut.on_node_lost(1);
  sut.on_node_joined(1, {2, 3});
  sut.want(4);
  EXPECT_THAT(sut.next().start, UnorderedElementsAre(1, 2, 3));
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

TEST(PlacesTest, WhoIsDrainedLeavesAndThereIsOneLess) {
  Places sut = four();
  sut.drain(1);
  EXPECT_EQ(sut.taken(), 3);
  EXPECT_THAT(sut.next().ask, ElementsAre(1));
  sut.want(3);
  sut.drain(0);
  sut.drain(0);
  EXPECT_EQ(sut.wanted(), 2);
  EXPECT_THAT(sut.next().ask, ElementsAre(1)) << "the last of the node that leads evaluates";
  EXPECT_THAT(sut.kept(), IsEmpty()) << "it leaves with its node";
  for (const int rank : {2, 3}) sut.drain(rank);
  EXPECT_THAT(sut.next().ask, ElementsAre(1, 2, 3)) << "others need not keep one";
  EXPECT_THAT(sut.kept(), ElementsAre(0)) << "nobody else is there";
  EXPECT_THAT(sut.next().start, IsEmpty());
}

TEST(PlacesTest, WhoIsDrainedOnItsWayLeavesWhenItIsThere) {
  Places sut({0, 0, 0}, {2});
  sut.want(3);
  ASSERT_THAT(sut.next().start, ElementsAre(2));
  sut.drain(2);
  sut.on_left(1, true, false);
  sut.drain(1);
  auto steps = sut.next();
  EXPECT_THAT(steps.ask, IsEmpty());
  EXPECT_THAT(steps.start, IsEmpty());
  sut.on_there(2);
  sut.on_there(1);
  EXPECT_THAT(sut.next().ask, ElementsAre(1, 2));
  EXPECT_EQ(sut.taken(), 1);
}

TEST(PlacesTest, TheWorkersOfADrainedNodeAreReplacedElsewhere) {
  Places sut({0, 0, 0, 1, 1}, {1, 2});
  sut.drain_node(1);
  auto steps = sut.next();
  EXPECT_THAT(steps.start, ElementsAre(1, 2));
  EXPECT_THAT(steps.ask, ElementsAre(3, 4));
  for (const int rank : {3, 4}) {
    sut.on_left(rank, false, true);
    sut.on_over(rank);
  }
  sut.want(5);
  EXPECT_THAT(sut.next().start, IsEmpty()) << "nobody comes to a node that is drained";
  sut.drain_node(1);
  EXPECT_EQ(sut.wanted(), 5);
  for (const int rank : {0, 1, 2}) sut.on_there(rank);
  sut.drain(0);
  EXPECT_THAT(sut.next().ask, ElementsAre(0));
  sut.on_left(0, false, true);
  sut.on_over(0);
  EXPECT_THAT(sut.next().start, IsEmpty()) << "nor back to the place that was drained";
}

TEST(PlacesTest, AsManyStayAsThereHaveToBe) {
  Places sut({0, 1, 1, 1}, {3}, 2);
  for (const int rank : {0, 1, 2}) sut.drain(rank);
  EXPECT_THAT(sut.next().ask, ElementsAre(1));
  EXPECT_THAT(sut.kept(), ElementsAre(0, 2));
  sut.want(2);
  ASSERT_THAT(sut.next().start, ElementsAre(3));
  sut.on_there(3);
  EXPECT_THAT(sut.next().ask, ElementsAre(1, 2));
  EXPECT_THAT(sut.kept(), ElementsAre(0));
  sut.on_node_lost(1);
  sut.on_node_lost(0);
  EXPECT_THAT(sut.kept(), IsEmpty());
}

/// As the head answers.
nlohmann::json moved(std::vector<int> nodes, std::vector<int> lost = {}) {
  return {{"nodes", std::move(nodes)}, {"lost", std::move(lost)}};
}

void join(Places& sut, int node, const std::vector<int>& places) {
  sut.on_event({{"event", "node_joined"}, {"node", node}, {"places", places}});
}

void drain_out(Places& sut, int rank) {
  sut.on_left(rank, false, true);
  sut.on_over(rank);
}

TEST(PlacesTest, TheLastOneOfTheLeaderLeavesWithItsNode) {
  Places sut({0, 0, 1, 1, 2}, {3});
  sut.drain_node(0);
  EXPECT_THAT(sut.kept(), IsEmpty());
  auto steps = sut.next();
  EXPECT_THAT(steps.ask, ElementsAre(0));
  EXPECT_THAT(steps.start, ElementsAre(3)) << "in its stead";
  EXPECT_THAT(steps.move, IsEmpty()) << "another one is on its way out";
  sut.on_there(3);
  drain_out(sut, 0);
  steps = sut.next();
  EXPECT_THAT(steps.move, ElementsAre(Pair(0, 2), Pair(1, 2))) << "which has fewest";
  EXPECT_THAT(steps.ask, IsEmpty());
  EXPECT_THAT(sut.kept(), IsEmpty());
  EXPECT_TRUE(sut.is_leaving(1));
  EXPECT_EQ(sut.taken(), 3);
  sut.on_moved(moved({2, 2, 1, 1, 2}));
  EXPECT_THAT(sut.next().start, IsEmpty()) << "the node has not said that it has them";
  for (const bool joins_first : {false, true}) {
    Places each = sut;
    if (joins_first) join(each, 2, {0, 1});
    each.on_left(1, false, true);
    if (!joins_first) join(each, 2, {0, 1});
    EXPECT_TRUE(each.is_leaving(1));
    EXPECT_THAT(each.next().start, ElementsAre(0)) << "the other's process is there still";
    each.on_over(1);
    EXPECT_THAT(each.next().move, IsEmpty());
    each.want(5);
    EXPECT_THAT(each.next().start, ElementsAre(1));
    EXPECT_EQ(each.node_of(0), 2);
  }
}

TEST(PlacesTest, AnotherOneComesMeanwhileWhereThereIsAPlace) {
  Places sut({0, 0, 1, 1}, {1, 3});
  sut.drain_node(0);
  const auto steps = sut.next();
  EXPECT_THAT(steps.move, ElementsAre(Pair(0, 1), Pair(1, 1)));
  EXPECT_THAT(steps.start, ElementsAre(3));
  sut.want(3);
  EXPECT_THAT(sut.next().start, IsEmpty()) << "before the others are there";
  join(sut, 1, {0, 1});
  EXPECT_THAT(sut.next().start, ElementsAre(1));
}

TEST(PlacesTest, ItStaysWhereTheJobHasNoOtherLeg) {
  Places sut = four();
  sut.drain(0);
  ASSERT_THAT(sut.next().ask, ElementsAre(0));
  drain_out(sut, 0);
  sut.drain(1);
  ASSERT_THAT(sut.next().move, ElementsAre(Pair(0, 1), Pair(1, 1)));
  sut.on_moved(fail(ErrorKind::disconnected, "ask again"));
  ASSERT_THAT(sut.next().move, ElementsAre(Pair(0, 1), Pair(1, 1)));
  sut.on_moved(fail(ErrorKind::infeasible, "no"));
  EXPECT_THAT(sut.next().move, IsEmpty());
  EXPECT_THAT(sut.kept(), ElementsAre(1));
}

/// The only one that is left, or the only node that is.
TEST(PlacesTest, NobodyLeavesWithTheLastNode) {
  Places sut({0, 1}, {});
  for (const int node : {0, 1}) sut.drain_node(node);
  EXPECT_THAT(sut.next().move, IsEmpty());
  EXPECT_THAT(sut.next().ask, ElementsAre(1));
  drain_out(sut, 1);
  EXPECT_THAT(sut.kept(), ElementsAre(0));
  EXPECT_THAT(sut.next().move, IsEmpty());
}

TEST(PlacesTest, WhoLeavesWithItsNodeMayBeKilledFirst) {
  Places sut({0, 1, 1}, {});
  sut.drain(0);
  ASSERT_THAT(sut.next().move, ElementsAre(Pair(0, 1)));
  Places lost = sut;
  sut.on_left(0, true, false);
  join(sut, 1, {0});
  sut.on_over(0);
  EXPECT_TRUE(sut.is_vacant(0));
  lost.on_node_lost(0);
  join(lost, 1, {0});
  EXPECT_TRUE(lost.is_vacant(0));
  EXPECT_THAT(lost.next().move, IsEmpty());
}

/// Its place is as good as vacant, and was wanted no more.
TEST(PlacesTest, WhoIsDrainedAndLostIsMissedByNobody) {
  Places sut = four();
  sut.want(4);
  sut.drain(3);
  sut.on_left(3, false, false);
  EXPECT_EQ(sut.wanted(), 3);
  const auto steps = sut.next();
  EXPECT_THAT(steps.start, IsEmpty());
  EXPECT_THAT(steps.ask, IsEmpty());
}

/// Whether it was drained alone or with its node.
TEST(PlacesTest, WhoIsKilledAfterItWasAskedLeavesWhenItIsBack) {
  for (const bool node : {false, true}) {
    Places sut = four();
    node ? sut.drain_node(1) : sut.drain(3);
    ASSERT_THAT(sut.next().ask, testing::Contains(3));
    sut.on_left(3, true, false);
    EXPECT_THAT(sut.next().ask, testing::Not(testing::Contains(3)));
    sut.on_there(3);
    EXPECT_THAT(sut.next().ask, testing::Contains(3));
    EXPECT_THAT(sut.next().ask, testing::AllOf(testing::Not(testing::Contains(0)), testing::Not(testing::Contains(1))));
  }
}

TEST(PlacesTest, WhoIsLostAfterADrainIsNotReplaced) {
  Places sut = four();
  sut.drain_node(1);
  ASSERT_THAT(sut.next().ask, ElementsAre(2, 3));
  sut.on_left(1, false, false);
  EXPECT_THAT(sut.next().start, IsEmpty());
}

/// Before either was looked at.
TEST(PlacesTest, WhatIsWantedAndADrainAddUp) {
  Places sut({0, 0, 0, 0}, {2, 3});
  sut.want(4);
  sut.drain(1);
  EXPECT_EQ(sut.wanted(), 3);
  sut = four();
  sut.want(2);
  sut.drain(2);
  EXPECT_THAT(sut.next().ask, ElementsAre(1, 2)) << "node 1 keeps the one that was not drained";
}

TEST(PlacesTest, ANodeThatIsNewGetsItsShareOfThePlacesWhenMoreAreWanted) {
  Places sut({0, 0, 0, 0, 0, 0, 0, 0}, {2, 3, 4, 5, 6, 7});
  sut.on_event({{"event", "room"}, {"node", 1}, {"cpus", 2}});
  EXPECT_THAT(sut.next().move, IsEmpty()) << "nobody wants more";
  sut.want(4);
  const auto steps = sut.next();
  EXPECT_THAT(steps.move, ElementsAre(Pair(4, 1), Pair(5, 1), Pair(6, 1), Pair(7, 1)));
  EXPECT_THAT(steps.start, IsEmpty()) << "they would start where most are";
  EXPECT_EQ(Places::list(steps.move), (nlohmann::json{{4, 1}, {5, 1}, {6, 1}, {7, 1}}));
  sut.on_moved(moved({0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_THAT(sut.next().start, IsEmpty()) << "the node has not said that it is there";
  join(sut, 1, {4, 5, 6, 7});
  EXPECT_THAT(sut.next().start, ElementsAre(4, 5));
  EXPECT_THAT(sut.next().move, IsEmpty());
  EXPECT_EQ(sut.node_of(7), 1);
}

TEST(PlacesTest, ItIsUsedAtOnceWhereTheJobGrowsWithTheCluster) {
  Places sut({0, 0, 0, 0}, {2, 3}, 1, true);
  sut.on_room(1, 1);
  sut.on_room(1, 1);
  EXPECT_EQ(sut.wanted(), 3) << "once";
  EXPECT_THAT(sut.next().move, ElementsAre(Pair(2, 1), Pair(3, 1)));
  Places told({0, 0, 0, 0}, {2, 3}, 1, true);
  told.want(2);
  told.on_room(1, 1);
  EXPECT_EQ(told.wanted(), 2);
}

TEST(PlacesTest, OneThatHasAPartInTheJobIsNoRoom) {
  Places sut({0, 0, 1, 1}, {1, 3}, 1, true);
  sut.on_room(1, 4);
  EXPECT_EQ(sut.wanted(), std::nullopt);
}

TEST(PlacesTest, EachNodeThatIsThereKeepsAPlace) {
  Places sut({0, 0, 1}, {1, 2});
  sut.on_room(2, 4);
  sut.want(3);
  EXPECT_THAT(sut.next().move, ElementsAre(Pair(1, 2)));
}

TEST(PlacesTest, PlacesOfLostNodesAreMovedFirstAndAllOfThem) {
  Places sut({0, 0, 1, 1}, {1});
  lose_node(sut, 1, {2, 3});
  sut.on_room(2, 4);
  EXPECT_THAT(sut.next().move, IsEmpty()) << "it may come back";
  sut.want(3);
  EXPECT_THAT(sut.next().move, ElementsAre(Pair(2, 2), Pair(3, 2)));
  join(sut, 2, {2, 3});
  EXPECT_THAT(sut.next().start, ElementsAre(2, 1));
}

TEST(PlacesTest, PlacesOfADrainedNodeAreMovedOnceAllHaveLeftThem) {
  Places sut({0, 0, 0, 1, 1, 1}, {});
  sut.drain_node(1);
  sut.on_room(2, 4);
  ASSERT_THAT(sut.next().ask, ElementsAre(3, 4, 5));
  for (const int rank : {3, 4, 5}) {
    EXPECT_THAT(sut.next().move, IsEmpty()) << rank;
    sut.on_left(rank, false, true);
    EXPECT_THAT(sut.next().move, IsEmpty()) << rank;
    sut.on_over(rank);
  }
  auto drained = sut;
  EXPECT_THAT(sut.next().move, ElementsAre(Pair(4, 2), Pair(5, 2)));
  join(sut, 2, {4, 5});
  EXPECT_THAT(sut.next().start, ElementsAre(4, 5));
  drained.drain_node(2);
  EXPECT_THAT(drained.next().move, IsEmpty());
}

TEST(PlacesTest, ANodeThatCameLaterGetsMoreWhenMoreAreFree) {
  Places sut({0, 0, 0, 0, 0, 0, 0, 0}, {7});
  sut.on_room(1, 4);
  sut.want(8);
  ASSERT_THAT(sut.next().move, ElementsAre(Pair(7, 1)));
  join(sut, 1, {7});
  ASSERT_THAT(sut.next().start, ElementsAre(7));
  sut.on_there(7);
  sut.drain(6);
  ASSERT_THAT(sut.next().ask, ElementsAre(6));
  sut.on_left(6, false, true);
  sut.on_over(6);
  sut.want(8);
  EXPECT_THAT(sut.next().move, ElementsAre(Pair(6, 1)));
}

TEST(PlacesTest, WhoWasToComeBackAndEndsFirstIsWantedNoMore) {
  Places sut({0, 0, 0}, {});
  sut.want(3);
  sut.on_left(2, true, false);
  EXPECT_EQ(sut.taken(), 3);
  sut.on_over(2);
  EXPECT_EQ(sut.taken(), 2);
  EXPECT_THAT(sut.next().start, IsEmpty());
  EXPECT_TRUE(sut.is_vacant(2));
}

TEST(PlacesTest, WhereTheHeadRefusesWorkersStartWhereTheyCan) {
  Places sut({0, 0, 0, 0}, {2, 3});
  sut.on_room(1, 2);
  sut.want(3);
  ASSERT_THAT(sut.next().move, ElementsAre(Pair(2, 1), Pair(3, 1)));
  sut.on_moved(fail(ErrorKind::disconnected, "ask again"));
  ASSERT_THAT(sut.next().move, ElementsAre(Pair(2, 1), Pair(3, 1))) << "it may have been done";
  sut.on_moved(fail(ErrorKind::infeasible, "it is gone"));
  const auto steps = sut.next();
  EXPECT_THAT(steps.move, IsEmpty());
  EXPECT_THAT(steps.start, ElementsAre(2));
}

TEST(PlacesTest, PlacesOfOneThatIsLostBeforeItIsThereAreItsStill) {
  Places sut({0, 0, 0, 0}, {2, 3});
  sut.on_room(1, 2);
  sut.want(4);
  ASSERT_THAT(sut.next().move, ElementsAre(Pair(2, 1), Pair(3, 1)));
  sut.on_moved(moved({0, 0, 1, 1}, {1}));
  const auto steps = sut.next();
  EXPECT_THAT(steps.move, IsEmpty());
  EXPECT_THAT(steps.start, IsEmpty());
  join(sut, 1, {2, 3});
  EXPECT_THAT(sut.next().start, ElementsAre(2, 3)) << "it is back";
}

TEST(PlacesTest, ALostNodeThatIsBackWhileItsPlacesAreMovedHasThemUntilTheOtherSays) {
  Places sut({0, 0, 1, 1}, {});
  lose_node(sut, 1, {2, 3});
  sut.on_room(2, 4);
  sut.want(4);
  ASSERT_THAT(sut.next().move, ElementsAre(Pair(2, 2), Pair(3, 2)));
  join(sut, 1, {2, 3});
  EXPECT_THAT(sut.next().start, IsEmpty());
  sut.on_moved(fail(ErrorKind::invalid, "node 1 would have no place left"));
  EXPECT_THAT(sut.next().move, ElementsAre(Pair(3, 2))) << "its share";
}

}  // namespace
}  // namespace paceline::job
