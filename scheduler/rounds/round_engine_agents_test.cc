#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "scheduler/rounds/round_engine.h"
#include "tests/support/rounds/agents.h"

// Stories of round engines on several agents.

namespace paceline::scheduler {
namespace {

using std::chrono::seconds;
using test::Agents;
using test::ranks;
using testing::IsEmpty;

/// Gradients of those who are there; worker v mod 3 starts version v, or so many do.
test::TestPlan::Answers eager(Trigger trigger, std::int32_t quorum = 0) {
  return {.round =
              [=](Version v) {
                Round round{Round::Kind::sync, trigger, Lateness::accumulates, {}};
                round.payload = Payload::gradients;
                round.initiator = Rank{static_cast<std::int32_t>(v.value % 3)};
                round.quorum = quorum;
                return round;
              },
          .groups = {},
          .payload = Payload::gradients};
}

TEST(TwoAgents, ARoundWhoseInitiatorHasLeftIsStartedByTheNextWorker) {
  Agents sut(2, {0, 0, 1}, eager(Trigger::initiator), 9);
  sut.arrive(2, 0);
  sut.arrive(1, 0);
  sut.deliver_all();
  EXPECT_THAT(sut.executed, IsEmpty());
  sut.gone(0);  // Worker 1 is the next, and is there.
  sut.deliver_all();
  EXPECT_TRUE(sut.has_verdict(1) && sut.has_verdict(2));
  sut.arrive(2, 1);
  sut.deliver_all();
  EXPECT_FALSE(sut.has_verdict(2));
  sut.gone(1);  // The other agent must be told that its worker is the next.
  sut.deliver_all();
  EXPECT_EQ(sut.verdict(2).next, Version{2});
}

TEST(TwoAgents, AnInitiatorThatHasStoppedHoldsTheOthersNoLongerThanPatience) {
  Agents sut(2, {0, 0, 1}, eager(Trigger::initiator), 9);
  sut.arrive(2, 0);
  sut.deliver_all();
  sut.after(seconds(9));
  sut.deliver_all();
  EXPECT_FALSE(sut.has_verdict(2));
  sut.after(seconds(1));
  sut.deliver_all();
  EXPECT_TRUE(sut.has_verdict(2));
  EXPECT_THAT(sut.left, IsEmpty());
  sut.arrive(0, 0);  // Welcome back.
  EXPECT_EQ(sut.verdict(0).next, Version{1});
  EXPECT_FALSE(sut.verdict(0).fresh);
}

TEST(TwoAgents, AQuorumIsNoMoreThanAreLeft) {
  Agents sut(2, {0, 1, 1}, eager(Trigger::quorum, 3), 9);
  sut.arrive(0, 0);
  sut.arrive(1, 0);
  sut.deliver_all();
  EXPECT_THAT(sut.executed, IsEmpty());
  sut.gone(2);  // It is not on the agent that counts.
  sut.deliver_all();
  EXPECT_TRUE(sut.has_verdict(0) && sut.has_verdict(1));
  sut.arrive(0, 1);
  sut.deliver_all();
  EXPECT_FALSE(sut.has_verdict(0));
  sut.arrive(1, 1);
  sut.deliver_all();
  EXPECT_TRUE(sut.has_verdict(0) && sut.has_verdict(1));
}

TEST(TwoAgents, ASyncNeedsThePartialsOfBoth) {
  Agents sut(2, {0, 0, 1, 1}, test::allreduce(), 9);
  for (int r : {0, 1}) sut.arrive(r, 0);
  ASSERT_EQ(sut.network.size(), 2u);  // Activation by the first, partial when both were there.
  sut.deliver_all();
  EXPECT_THAT(sut.executed, IsEmpty());
  for (int r : {2, 3}) sut.arrive(r, 0);
  ASSERT_EQ(sut.executed.size(), 1u);  // Node 1 has node 0's partial already.
  EXPECT_EQ(sut.executed[0].first, 1u);
  EXPECT_EQ(sut.executed[0].second.fresh, ranks({2, 3}));  // Each agent delivers to its own.
  EXPECT_EQ(sut.executed[0].second.others, std::vector{NodeId{0}});
  EXPECT_FALSE(sut.has_verdict(0));
  sut.deliver_all();
  EXPECT_EQ(sut.executed.size(), 2u);
  EXPECT_TRUE(sut.has_verdict(0) && sut.has_verdict(3));
}

TEST(TwoAgents, CtrlZOnOneWorkerDoesNotHangAllreduce) {
  Agents sut(2, {0, 0, 1, 1}, test::allreduce(), 9);
  for (int r : {0, 1, 2}) sut.arrive(r, 0);
  sut.deliver_all();
  sut.after(seconds(9));
  EXPECT_THAT(sut.left, IsEmpty());
  sut.after(seconds(1));
  ASSERT_EQ(sut.left.size(), 1u);
  EXPECT_EQ(sut.left[0].rank, Rank{3});
  sut.deliver_all();
  EXPECT_TRUE(sut.has_verdict(0) && sut.has_verdict(1) && sut.has_verdict(2));
}

TEST(TwoAgents, AnAgentWhoseWorkersAreAllStoppedStillAnswers) {
  Agents sut(2, {0, 1}, test::allreduce(), 9);
  for (int t : {0, 1}) {
    sut.arrive(0, t);
    sut.deliver_all();
    if (t == 0) sut.after(seconds(10));
    sut.deliver_all();
    EXPECT_TRUE(sut.has_verdict(0));
  }
  EXPECT_EQ(sut.left.size(), 1u);
  EXPECT_EQ(sut.engines[1].done(), Version{1});
}

TEST(TwoAgents, AnAgentWhoseWorkersAreAllDeadStillAnswersAtFirstArrival) {
  Agents sut(2, {0, 0, 1, 1}, test::wagma(3), 2);
  for (int r : {2, 3}) sut.gone(r);
  for (int t : {0, 1, 2}) {
    for (int r : {0, 1}) sut.arrive(r, t);
    sut.deliver_all();
    EXPECT_TRUE(sut.has_verdict(0) && sut.has_verdict(1));
  }
  EXPECT_TRUE(sut.verdict(0).end);
}

TEST(TwoAgents, APartialStandsForTheActivationThatItOvertook) {
  Agents sut(2, {0, 1, 0, 1}, test::wagma(4), 7);
  sut.arrive(0, 0);  // Groups {0,1} and {2,3} both span the agents.
  ASSERT_EQ(sut.network.size(), 3u);
  sut.deliver(1);
  EXPECT_EQ(sut.executed.size(), 1u);  // Node 1, group 0: it has both partials.
  sut.deliver_all();
  EXPECT_EQ(sut.executed.size(), 4u);
}

TEST(TwoAgents, AnActivationExecutesAllVersionsUpToItsOwnInOrderOnce) {
  Agents sut(2, {0, 0, 1, 1},
             test::wagma(8, Lateness::merges, {},
                         [](Version) {
                           return std::vector{ranks({0, 1}), ranks({2, 3})};  // Each agent on its own.
                         }),
             15);
  for (int t : {0, 1, 2}) sut.arrive(0, t);
  const auto messages = std::vector(sut.network.begin(), sut.network.end());
  ASSERT_EQ(messages.size(), 3u);
  sut.executed.clear();
  sut.hand_over(messages[2]);
  ASSERT_EQ(sut.executed.size(), 3u);
  for (std::int64_t v : {0, 1, 2}) EXPECT_EQ(sut.executed[static_cast<std::size_t>(v)].second.version, Version{v});
  for (const auto& m : messages) sut.hand_over(m);
  EXPECT_EQ(sut.executed.size(), 3u);
  sut.arrive(2, 0);
  EXPECT_EQ(sut.merged.at(0).with, Version{2});
  EXPECT_EQ(sut.verdict(2).next, Version{1});
}

TEST(TwoAgents, AWorkerElsewhereJoinsThePendingSync) {
  Agents sut(2, {0, 0, 1, 1}, test::wagma(2, Lateness::skips), 7);
  for (int t : {0, 1}) {
    sut.arrive(0, t);
    sut.deliver_all();
  }
  for (int r : {1, 2, 3}) sut.arrive(r, 0);
  sut.deliver_all();
  for (int r : {0, 1, 2, 3}) {
    EXPECT_EQ(sut.verdict(r).own, Version{1});
    EXPECT_TRUE(sut.verdict(r).fresh);
  }
}

TEST(TwoAgents, AJoinTakesPlaceEvenWhileVersionsBeforeTheSyncAreStillToBeExecuted) {
  Agents sut(2, {0, 0, 1, 1}, test::wagma(3, Lateness::skips), 8);
  sut.hold_executions = true;
  sut.engines[1].on_activation(NodeId{0}, NodeId{0}, Version{2},
                               sut.now);  // Its actions are held: nothing is sealed yet.
  sut.arrive(2, 0);
  EXPECT_FALSE(sut.has_verdict(2));
  EXPECT_THAT(sut.merged, IsEmpty());
}

TEST(TwoAgents, GraceIsCountedFromWhenAnAgentLearnsOfTheFirstArrival) {
  Agents sut(2, {0, 1}, test::local_sgd(1, Lateness::merges, Grace{.fixed = seconds(2)}), 7);
  sut.arrive(0, 0);
  sut.now += seconds(1);  // The activation travels.
  sut.deliver_all();
  EXPECT_EQ(sut.engines[1].next_deadline(), sut.now + seconds(2));
  sut.after(seconds(2));
  sut.deliver_all();
  EXPECT_TRUE(sut.verdict(0).averaged);
  sut.arrive(1, 0);
  EXPECT_FALSE(sut.verdict(1).fresh);
}

TEST(TwoAgents, NonblockingAbandonsOnBoth) {
  Agents sut(2, {0, 0, 1, 1}, test::nonblocking(), 5);
  sut.arrive(3, 0);
  sut.deliver_all();
  EXPECT_EQ(sut.abandoned.size(), 2u);
  EXPECT_TRUE(sut.has_verdict(3));
  EXPECT_EQ(sut.engines[0].done(), Version{0});
  EXPECT_FALSE(sut.has_verdict(0));
}

TEST(TwoAgents, WhatALostAgentHasNotGivenIsWaitedForNoLonger) {
  for (const bool is_sealed : {false, true}) {
    Agents sut(2, {0, 0, 1, 1}, test::allreduce(), 9);
    sut.hold_seals = !is_sealed;
    for (int r : {0, 1}) sut.arrive(r, 0);
    EXPECT_THAT(sut.executed, IsEmpty());
    sut.second_is_lost();
    sut.release();
    ASSERT_EQ(sut.executed.size(), 1u) << is_sealed;
    EXPECT_THAT(sut.executed[0].second.others, IsEmpty());
    sut.hold_seals = false;
    for (int r : {0, 1}) sut.arrive(r, 1);
    EXPECT_EQ(sut.verdict(1).next, Version{2});
    EXPECT_EQ(sut.engines[0].next_deadline(), std::nullopt);
  }
}

TEST(TwoAgents, WhatALostAgentHasGivenCountsAndWhatComesLaterDoesNot) {
  Agents sut(2, {0, 0, 1, 1}, test::allreduce(), 9);
  for (int r : {2, 3}) sut.arrive(r, 0);
  sut.deliver_all();  // Its partial, and an activation, before anybody here has arrived.
  sut.second_is_lost();
  for (int r : {0, 1}) sut.arrive(r, 0);
  ASSERT_FALSE(sut.executed.empty());
  EXPECT_EQ(sut.executed[0].second.others, std::vector{NodeId{1}});
  EXPECT_THAT(sut.engines[0].on_partial(NodeId{1}, Version{1}, 0, sut.now), IsEmpty());
  for (int r : {0, 1}) sut.arrive(r, 1);
  EXPECT_THAT(sut.executed.back().second.others, IsEmpty());
  EXPECT_TRUE(sut.has_verdict(0) && sut.has_verdict(1));
}

/// What it had counted is counted again by the next one.
TEST(ThreeAgents, WhereTheOneThatCountsIsLostTheNextOneDoes) {
  Agents sut(3, {0, 1, 2}, eager(Trigger::quorum, 2), 9);
  sut.arrive(2, 0);
  sut.deliver_all();
  for (const int left : {1, 2}) sut.lose(left, 0);
  EXPECT_FALSE(sut.has_verdict(2));
  sut.deliver_all();
  EXPECT_FALSE(sut.has_verdict(2)) << "one of two";
  sut.arrive(1, 0);
  sut.deliver_all();
  EXPECT_TRUE(sut.has_verdict(1) && sut.has_verdict(2));
}

TEST(TwoAgents, GroupsAndQuorumsAreMadeOfWhoIsLeft) {
  Agents groups(2, {0, 1, 0, 1}, test::wagma(4), 7);
  groups.arrive(0, 0);
  groups.second_is_lost();
  EXPECT_EQ(groups.engines[0].done(), Version{0});
  Agents quorum(2, {0, 1, 1}, eager(Trigger::quorum, 3), 9);
  quorum.arrive(0, 0);
  quorum.second_is_lost();
  EXPECT_TRUE(quorum.has_verdict(0));
  Agents initiator(2, {0, 1, 1}, eager(Trigger::initiator), 9);
  for (int t : {0, 1, 2}) {
    initiator.arrive(0, t);
    if (t == 0) initiator.second_is_lost();
    EXPECT_TRUE(initiator.has_verdict(0)) << t;
  }
}

TEST(TwoAgents, TheFirstOneIsNotDoneWithout) {
  Agents sut(2, {0, 1}, test::allreduce(), 9);
  EXPECT_THAT(sut.engines[1].on_node_gone(NodeId{0}, sut.now), IsEmpty());
}

TEST(FourAgents, OneArrivalActivatesAllAlongTheTree) {
  Agents sut(4, {0, 1, 2, 3}, test::wagma(4), 7);
  sut.arrive(1, 0);
  std::set<std::pair<std::int32_t, std::int32_t>> edges;
  while (!sut.network.empty()) sut.deliver();
  for (const auto& a : sut.activations) {
    EXPECT_EQ(a.root, NodeId{1});
    edges.emplace(0, a.to.value);
  }
  EXPECT_EQ(sut.activations.size(), 3u);
  EXPECT_EQ(edges, (std::set<std::pair<std::int32_t, std::int32_t>>{{0, 0}, {0, 2}, {0, 3}}));
  for (const auto& e : sut.engines) EXPECT_EQ(e.done(), Version{0});
}

TEST(FourAgents, TwoRootsAtOnceReachEverybodyWhateverTheOrder) {
  for (unsigned order = 0; order < 24; ++order) {
    Agents sut(4, {0, 1, 2, 3}, test::wagma(4), 7);
    sut.arrive(1, 0);
    sut.arrive(2, 0);
    unsigned dice = order;
    while (!sut.network.empty()) {
      sut.deliver(dice % sut.network.size());
      dice = dice * 7 + 3;
    }
    for (const auto& e : sut.engines) ASSERT_EQ(e.done(), Version{0}) << "order " << order;
    ASSERT_EQ(sut.executed.size(), 4u);
  }
}

TEST(FourAgents, AnAgentWithoutWorkersIsInNobodysWay) {
  Agents sut(3, {0, 2}, test::allreduce(), 3);
  for (int t : {0, 1, 2, 3}) {
    sut.arrive(0, t);
    sut.arrive(1, t);
    sut.deliver_all();
    EXPECT_TRUE(sut.has_verdict(0) && sut.has_verdict(1));
  }
}

/// The tree is of those that have the job: of four agents' the fourth would be the first one's way to the second.
TEST(FourAgents, NoActivationGoesByAnAgentWithoutWorkers) {
  const auto each_alone = [](Version) { return std::vector{ranks({0}), ranks({1}), ranks({2})}; };
  Agents sut(4, {0, 1, 2}, test::wagma(4, Lateness::merges, {}, each_alone), 7);
  sut.arrive(2, 0);
  sut.deliver_all();
  for (const int agent : {0, 1, 2}) EXPECT_EQ(sut.engines[static_cast<std::size_t>(agent)].done(), Version{0});
}

/// What the lost one was to send on does not come; and from then on everybody is told at once.
TEST(FourAgents, AfterALossActivationsGoToAllThatAreLeft) {
  const auto each_alone = [](Version) { return std::vector{ranks({0}), ranks({1}), ranks({2}), ranks({3})}; };
  Agents sut(4, {0, 1, 2, 3}, test::wagma(4, Lateness::merges, {}, each_alone), 7);
  sut.arrive(0, 0);
  while (!sut.network.empty()) {
    if (sut.network.front().to == NodeId{1} || sut.network.front().from == NodeId{1}) {
      sut.network.pop_front();
    } else {
      sut.deliver();
    }
  }
  EXPECT_NE(sut.engines[3].done(), Version{0});
  for (const int agent : {0, 2, 3}) sut.lose(agent, 1);
  sut.deliver_all();
  for (const std::size_t agent : {0U, 2U, 3U}) EXPECT_EQ(sut.engines[agent].done(), Version{0});
  sut.activations.clear();
  sut.arrive(3, 1);
  sut.deliver_all();
  for (const std::size_t agent : {0U, 2U, 3U}) EXPECT_EQ(sut.engines[agent].done(), Version{1});
  EXPECT_EQ(sut.activations.size(), 2u) << "from the first, to each";
}

TEST(OutOfRange, MessagesAreIgnored) {
  Agents sut(2, {0, 1}, test::allreduce(), 3);
  RoundEngine& e = sut.engines[0];
  EXPECT_THAT(e.on_activation(NodeId{9}, NodeId{1}, Version{0}, sut.now), IsEmpty());
  EXPECT_THAT(e.on_activation(NodeId{1}, NodeId{1}, Version{4}, sut.now), IsEmpty());
  EXPECT_THAT(e.on_partial(NodeId{1}, Version{4}, 0, sut.now), IsEmpty());
  EXPECT_THAT(e.on_partial(NodeId{-1}, Version{0}, 0, sut.now), IsEmpty());
  EXPECT_THAT(e.on_partial(NodeId{1}, Version{0}, 77, sut.now), IsEmpty());
  EXPECT_THAT(e.on_sealed(Version{0}, 0, {}, sut.now), IsEmpty());
  EXPECT_THAT(e.on_executed(Version{0}, 0, {}, sut.now), IsEmpty());
  EXPECT_THAT(e.on_merged(Rank{0}, sut.now), IsEmpty());
  EXPECT_FALSE(e.waiting());
}

// A quorum and its grace

test::TestPlan::Answers quorum_of_two(Grace grace) {
  auto answers = test::local_sgd(1, Lateness::skips, grace);
  answers.round = [given = answers.round](Version v) {
    Round round = given(v);
    round.trigger = Trigger::quorum;
    round.quorum = 2;
    return round;
  };
  return answers;
}

TEST(Quorum, FiresOnceItsGraceIsOverAndTheLateSkip) {
  Agents sut(2, {0, 0, 1}, quorum_of_two(Grace{.fixed = seconds(2)}), 7);
  sut.arrive(2, 0);
  sut.deliver_all();
  sut.after(seconds(9));
  EXPECT_TRUE(sut.executed.empty());
  EXPECT_EQ(sut.engines[0].next_deadline(), std::nullopt);
  sut.arrive(0, 0);
  sut.after(seconds(1));
  EXPECT_EQ(sut.engines[0].next_deadline(), sut.now + seconds(1));
  EXPECT_TRUE(sut.executed.empty());
  sut.after(seconds(1));
  sut.deliver_all();
  EXPECT_EQ(sut.verdict(0).own, Version{0});
  EXPECT_EQ(sut.verdict(2).own, Version{0});
  sut.arrive(1, 0);
  EXPECT_FALSE(sut.verdict(1).fresh);
  EXPECT_EQ(sut.verdict(1).next, Version{1});
}

TEST(Quorum, FiresAtOnceWhenAllHaveArrived) {
  Agents sut(2, {0, 0, 1}, quorum_of_two(Grace{.fixed = seconds(2)}), 7);
  for (int r : {2, 0, 1}) {
    sut.arrive(r, 0);
    sut.deliver_all();
  }
  EXPECT_EQ(sut.engines[0].done(), Version{0});
  EXPECT_EQ(sut.engines[0].next_deadline(), std::nullopt);
}

TEST(Quorum, IsWaitedForAsLongAsItsRoundsTake) {
  auto answers = quorum_of_two(Grace{.fixed = seconds(2)});
  answers.period = 3;
  Agents sut(2, {0, 0, 1}, answers, 7);
  sut.arrive(2, 0);  // A step of a second: patience is ten times three of them.
  sut.after(seconds(29));
  sut.deliver_all();
  EXPECT_FALSE(sut.has_verdict(2));
  sut.after(seconds(1));
  sut.deliver_all();
  EXPECT_TRUE(sut.has_verdict(2));
}

TEST(Quorum, TheGraceIsAMultipleOfTheMedianTimeFromTheFirstArrivalToTheQuorum) {
  Agents sut(1, {0, 0, 0}, quorum_of_two(Grace{.median_spreads = 2}), 9);
  const auto round = [&](std::int64_t v, Duration spread) {
    sut.arrive(0, v);
    sut.after(spread);
    sut.arrive(1, v);
    const auto deadline = sut.engines[0].next_deadline();
    const auto grace = deadline ? *deadline - sut.now : Duration::zero();
    sut.after(grace);
    EXPECT_EQ(sut.engines[0].done(), Version{v});
    return grace;
  };
  EXPECT_EQ(round(0, seconds(3)), seconds(6));
  EXPECT_EQ(round(1, seconds(1)), seconds(2));  // Of two the lower is the median.
  EXPECT_EQ(round(2, seconds(4)), seconds(6));
  EXPECT_EQ(round(3, seconds(0)), seconds(2));
}

}  // namespace
}  // namespace paceline::scheduler
