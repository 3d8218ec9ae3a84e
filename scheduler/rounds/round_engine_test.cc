#include "scheduler/rounds/round_engine.h"

#include <gmock/gmock.h>

#include "tests/support/rounds/agents.h"

// Stories of the round engine with one agent, by trigger and lateness. Several agents: round_engine_agents_test.cc.

namespace paceline::scheduler {
namespace {

using std::chrono::seconds;
using test::Agents;
using test::ranks;
using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<std::int32_t> kFourOnOne{0, 0, 0, 0};

// All arrived, late ones are waited for -------------------------------------------------------------------------------

TEST(Allreduce, FiresWhenTheLastHasArrivedAndTellsAll) {
  Agents sut(1, kFourOnOne, test::allreduce(), 9);
  for (int r : {2, 0, 3}) sut.arrive(r, 0);
  EXPECT_THAT(sut.executed, IsEmpty());
  sut.arrive(1, 0);
  ASSERT_EQ(sut.executed.size(), 1u);
  EXPECT_TRUE(sut.executed[0].second.sync);
  EXPECT_EQ(sut.executed[0].second.fresh, ranks({0, 1, 2, 3}));
  for (int r = 0; r < 4; ++r) {
    EXPECT_EQ(sut.verdict(r).own, Version{0});
    EXPECT_EQ(sut.verdict(r).next, Version{1});
    EXPECT_EQ(sut.verdict(r).next_round, Version{1});
    EXPECT_TRUE(sut.verdict(r).fresh && sut.verdict(r).averaged);
    EXPECT_FALSE(sut.verdict(r).end);
  }
  EXPECT_EQ(sut.engines[0].done(), Version{0});
}

TEST(Allreduce, IgnoresAReportThatComesTwiceOrFromNobody) {
  Agents sut(1, {0, 0}, test::allreduce(), 9);
  sut.arrive(0, 0);
  sut.report(0, 0);
  EXPECT_THAT(sut.executed, IsEmpty());
  EXPECT_THAT(sut.engines[0].on_arrival(Rank{7}, Version{0}, {}, sut.now), IsEmpty());
  EXPECT_THAT(sut.engines[0].on_arrival(Rank{1}, Version{10}, {}, sut.now), IsEmpty());
  sut.arrive(1, 0);
  EXPECT_EQ(sut.executed.size(), 1u);
}

TEST(Allreduce, TheLastVersionEndsEverybody) {
  Agents sut(1, {0, 0}, test::allreduce(), 1);
  for (int t : {0, 1}) {
    for (int r : {0, 1}) sut.arrive(r, t);
    for (int r : {0, 1}) EXPECT_EQ(sut.verdict(r).end, t == 1);
  }
}

TEST(Allreduce, AJobThatEndsEarlierEndsEverybodyThere) {
  Agents sut(1, {0, 0}, test::allreduce(), 9);
  sut.arrive(0, 0);
  sut.engines[0].end_at(Version{0});
  sut.arrive(1, 0);
  for (int r : {0, 1}) EXPECT_TRUE(sut.verdict(r).end);
  EXPECT_THAT(sut.engines[0].on_arrival(Rank{0}, Version{1}, {}, sut.now), IsEmpty());
}

TEST(Allreduce, AStoppedWorkerLeavesAfterPatience) {
  Agents sut(1, {0, 0, 0}, test::allreduce(), 9);
  sut.arrive(0, 0);
  EXPECT_EQ(sut.engines[0].next_deadline(), sut.now + seconds(10));  // 10 median steps are more than 5 s.
  sut.after(seconds(2));
  sut.arrive(1, 0);
  sut.after(seconds(7));
  EXPECT_THAT(sut.left, IsEmpty());
  const auto waiting = sut.engines[0].waiting();
  ASSERT_TRUE(waiting);
  EXPECT_EQ(waiting->arrived, ranks({0, 1}));
  EXPECT_EQ(waiting->missing, ranks({2}));
  EXPECT_EQ(waiting->since, Instant{});
  sut.after(seconds(1));
  ASSERT_EQ(sut.left.size(), 1u);
  EXPECT_EQ(sut.left[0].rank, Rank{2});
  EXPECT_EQ(sut.left[0].silent, seconds(10));
  EXPECT_EQ(sut.executed.at(0).second.fresh, ranks({0, 1}));
  EXPECT_THAT(sut.executed.at(0).second.stale, IsEmpty());
  sut.arrive(2, 0);  // It comes back too late.
  EXPECT_FALSE(sut.has_verdict(2));
  for (int r : {0, 1}) sut.arrive(r, 1);
  EXPECT_EQ(sut.executed.size(), 2u);
}

TEST(Allreduce, AWorkerThatGivesSignsOfLifeIsWaitedFor) {
  Agents sut(1, {0, 0}, test::allreduce(), 9);
  sut.arrive(0, 0);
  for (int i = 0; i < 20; ++i) {
    sut.after(seconds(6));
    sut.engines[0].on_alive(Rank{1}, sut.now);
  }
  EXPECT_THAT(sut.left, IsEmpty());
  EXPECT_EQ(sut.engines[0].next_deadline(), sut.now + seconds(10));
  sut.after(seconds(10));  // And then no more.
  ASSERT_EQ(sut.left.size(), 1u);
  EXPECT_EQ(sut.left[0].rank, Rank{1});
  EXPECT_EQ(sut.left[0].silent, seconds(10));
  EXPECT_EQ(sut.left[0].waited, seconds(130));
}

TEST(Allreduce, AnOldSignOfLifeChangesNothing) {
  Agents sut(1, {0, 0}, test::allreduce(), 9);
  sut.arrive(0, 0);
  sut.engines[0].on_alive(Rank{1}, sut.now + seconds(3));
  sut.engines[0].on_alive(Rank{1}, sut.now + seconds(2));
  sut.engines[0].on_alive(Rank{7}, sut.now + seconds(9));  // Nobody.
  EXPECT_EQ(sut.engines[0].next_deadline(), sut.now + seconds(13));
}

TEST(Allreduce, ALimitHoldsForTheLivingToo) {
  RoundEngine::Options options;
  options.node_of = {NodeId{0}, NodeId{0}};
  options.last = Version{9};
  options.wait_limit = seconds(30);
  RoundEngine sut(options, std::make_unique<test::TestPlan>(test::allreduce()));
  (void)sut.on_arrival(Rank{0}, Version{0}, seconds(1), Instant{});
  sut.on_alive(Rank{1}, Instant(seconds(28)));
  EXPECT_EQ(sut.next_deadline(), Instant(seconds(30)));
  const auto actions = sut.tick(Instant(seconds(30)));
  ASSERT_FALSE(actions.empty());
  const auto* left = std::get_if<RoundEngine::Leave>(&actions.front());
  ASSERT_TRUE(left);
  EXPECT_EQ(left->silent, seconds(2));
  EXPECT_EQ(left->waited, seconds(30));
}

TEST(Allreduce, PatienceIsAtLeastItsMinimum) {
  Agents sut(1, {0, 0}, test::allreduce(), 9);
  sut.compute = std::chrono::milliseconds(1);
  sut.arrive(0, 0);
  EXPECT_EQ(sut.engines[0].next_deadline(), sut.now + seconds(5));
}

TEST(Allreduce, ADeadWorkerIsNotWaitedForAtAll) {
  Agents sut(1, {0, 0, 0}, test::allreduce(), 9);
  for (int r : {0, 1}) sut.arrive(r, 0);
  sut.gone(2);
  EXPECT_THAT(sut.left, IsEmpty());
  EXPECT_EQ(sut.executed.at(0).second.fresh, ranks({0, 1}));
  EXPECT_TRUE(sut.verdict(1).averaged);
}

TEST(LocalSgd, TellsWorkersWhereTheirPeriodEnds) {
  Agents sut(1, {0, 0}, test::local_sgd(3), 8);
  for (int r : {0, 1}) sut.arrive(r, 2);
  EXPECT_EQ(sut.verdict(0).next, Version{3});
  EXPECT_EQ(sut.verdict(0).next_round, Version{5});
}

// First arrived, late ones merge --------------------------------------------------------------------------------------

TEST(WagmaMerge, TheFirstFiresAndTheLateMergeAndGoOnWithTheirOwnNext) {
  Agents sut(1, kFourOnOne, test::wagma(4), 7);
  sut.arrive(0, 0);
  ASSERT_EQ(sut.executed.size(), 2u);  // Groups {0,1} and {2,3}.
  EXPECT_EQ(sut.executed[0].second.fresh, ranks({0}));
  EXPECT_EQ(sut.executed[0].second.stale, ranks({1}));
  EXPECT_EQ(sut.executed[1].second.stale, ranks({2, 3}));
  EXPECT_EQ(sut.verdict(0).next, Version{1});
  sut.arrive(0, 1);
  EXPECT_EQ(sut.engines[0].done(), Version{1});
  sut.arrive(1, 0);
  ASSERT_EQ(sut.merged.size(), 1u);
  EXPECT_EQ(sut.merged[0].own, Version{0});
  EXPECT_EQ(sut.merged[0].with, Version{1});  // The newest that there is.
  EXPECT_FALSE(sut.verdict(1).fresh);
  EXPECT_TRUE(sut.verdict(1).averaged);
  EXPECT_EQ(sut.verdict(1).next, Version{1});
  EXPECT_EQ(sut.verdict(1).skipped, 0);
}

TEST(WagmaMerge, APublicationThatIsSealedBeforeItsReportIsFresh) {
  Agents sut(1, kFourOnOne, test::wagma(4), 7);
  sut.publish(1, 0);
  sut.arrive(0, 0);
  EXPECT_EQ(sut.executed.at(0).second.fresh, ranks({0, 1}));
  sut.report(1, 0);
  EXPECT_THAT(sut.merged, IsEmpty());
  EXPECT_TRUE(sut.verdict(1).fresh);
  EXPECT_EQ(sut.verdict(1).next, Version{1});
}

TEST(WagmaMerge, APublicationThatComesAfterTheSealIsLateEvenIfTheReportComesBeforeTheAnswer) {
  Agents sut(1, kFourOnOne, test::wagma(4), 7);
  sut.hold_seals = true;
  sut.arrive(0, 0);
  const auto seals = std::exchange(sut.held, {});
  ASSERT_EQ(seals.size(), 2u);
  sut.arrive(1, 0);  // The shell had pinned the windows before.
  for (auto& seal : sut.engines[0].on_sealed(Version{0}, 0, {Version{0}, std::nullopt}, sut.now))
    sut.held.emplace_back(0, seal);
  sut.release();
  ASSERT_EQ(sut.merged.size(), 1u);
  EXPECT_EQ(sut.merged[0].rank, Rank{1});
  EXPECT_FALSE(sut.verdict(1).fresh);
}

TEST(WagmaMerge, ALateWorkerWaitsForTheExecutionThatItMissed) {
  Agents sut(1, kFourOnOne, test::wagma(4), 7);
  sut.hold_executions = true;
  sut.arrive(0, 0);
  sut.arrive(1, 0);
  EXPECT_THAT(sut.merged, IsEmpty());
  EXPECT_FALSE(sut.has_verdict(0));
  sut.release();
  ASSERT_EQ(sut.merged.size(), 1u);
  EXPECT_EQ(sut.merged[0].with, Version{0});
  EXPECT_TRUE(sut.has_verdict(0) && sut.has_verdict(1));
}

TEST(WagmaMerge, AVersionIsSealedOnlyWhenTheOneBeforeIsExecutedInAllGroups) {
  Agents sut(1, kFourOnOne, test::wagma(4), 7);
  sut.hold_executions = true;
  sut.arrive(0, 0);
  ASSERT_EQ(sut.held.size(), 2u);
  auto second = sut.held.back();
  sut.held.pop_back();
  sut.release();  // Group 0 only: its member goes on at once ...
  EXPECT_TRUE(sut.has_verdict(0));
  sut.arrive(0, 1);  // ... but version 1 has to wait.
  EXPECT_EQ(sut.executed.size(), 1u);
  EXPECT_THAT(sut.held, IsEmpty());
  sut.held.push_back(second);
  sut.hold_executions = false;
  sut.release();
  EXPECT_EQ(sut.engines[0].done(), Version{1});
  EXPECT_EQ(sut.executed.size(), 4u);
}

TEST(WagmaMerge, TheSyncWaitsForEverybody) {
  Agents sut(1, kFourOnOne, test::wagma(2), 3);
  sut.arrive(0, 0);
  sut.arrive(0, 1);
  for (int r : {1, 2, 3}) {
    EXPECT_EQ(sut.engines[0].done(), Version{0});
    sut.arrive(r, 0);
    EXPECT_FALSE(sut.verdict(r).fresh);
    EXPECT_EQ(sut.verdict(r).next, Version{1});
    sut.arrive(r, 1);
  }
  EXPECT_EQ(sut.engines[0].done(), Version{1});
  EXPECT_EQ(sut.executed.back().second.fresh, ranks({0, 1, 2, 3}));
}

// First arrived, late ones skip ---------------------------------------------------------------------------------------

TEST(WagmaSkip, ALateWorkerGoesOnWithTheCurrentIteration) {
  Agents sut(1, kFourOnOne, test::wagma(6, Lateness::skips), 11);
  for (int t : {0, 1, 2}) sut.arrive(0, t);
  sut.arrive(1, 0);
  EXPECT_EQ(sut.merged.at(0).with, Version{2});
  EXPECT_EQ(sut.verdict(1).own, Version{0});
  EXPECT_EQ(sut.verdict(1).next, Version{3});
  EXPECT_EQ(sut.verdict(1).skipped, 2);
}

TEST(WagmaSkip, WhoFinishesWhileASyncIsPendingJoinsIt) {
  Agents sut(1, kFourOnOne, test::wagma(3, Lateness::skips), 11);
  for (int t : {0, 1, 2}) sut.arrive(0, t);
  for (int r : {1, 2}) {
    sut.arrive(r, 0);
    EXPECT_FALSE(sut.has_verdict(r));
  }
  EXPECT_THAT(sut.merged, IsEmpty());
  sut.arrive(3, 0);
  EXPECT_EQ(sut.executed.back().second.fresh, ranks({0, 1, 2, 3}));
  EXPECT_EQ(sut.verdict(1).own, Version{2});
  EXPECT_TRUE(sut.verdict(1).fresh);
  EXPECT_EQ(sut.verdict(1).next, Version{3});
  EXPECT_EQ(sut.verdict(1).skipped, 2);
  EXPECT_EQ(sut.verdict(0).skipped, 0);
}

/// Its publication is in the seal, but it waits for the sync: it is not to get the group's average.
TEST(WagmaSkip, WhoJoinsASyncWhileAVersionIsSealedIsStaleInThat) {
  Agents sut(2, {0, 0, 1, 1}, test::wagma(3, Lateness::skips), 11);
  sut.hold_seals = true;
  sut.arrive(0, 0);
  (void)sut.engines[0].on_activation(NodeId{1}, NodeId{1}, Version{2}, sut.now);
  sut.arrive(1, 0);
  sut.hold_seals = false;
  sut.release();
  ASSERT_EQ(sut.executed.size(), 1u);
  EXPECT_EQ(sut.executed[0].second.fresh, ranks({0}));
  EXPECT_EQ(sut.executed[0].second.stale, ranks({1}));
}

/// Sums of groups differ from agent to agent.
TEST(Plan, HearsTheSumsOfAllOnly) {
  std::vector<std::int64_t> heard;
  auto answers = test::wagma(2);
  answers.groups = [](Version) { return std::vector<std::vector<Rank>>{ranks({0})}; };
  answers.executed = [&](Version, const RoundSums& sums) { heard.push_back(sums.samples); };
  RoundEngine sut({.self = NodeId{0}, .node_of = {NodeId{0}}, .last = Version{1}},
                  std::make_unique<test::TestPlan>(answers));
  RoundSums sums;
  sums.samples = 7;
  for (const std::int64_t t : {0, 1}) {
    (void)sut.on_arrival(Rank{0}, Version{t}, {}, Instant{});
    (void)sut.on_sealed(Version{t}, 0, {Version{t}}, Instant{});
    (void)sut.on_executed(Version{t}, 0, sums, Instant{});
  }
  EXPECT_THAT(heard, ElementsAre(0, 7));
}

TEST(WagmaSkip, AfterTheLastVersionALateWorkerMergesAndEnds) {
  Agents sut(1, {0, 0}, test::local_sgd(2, Lateness::skips, Grace{.fixed = seconds(1)}), 1);
  sut.arrive(0, 0);
  sut.arrive(0, 1);
  sut.after(seconds(1));
  EXPECT_TRUE(sut.verdict(0).end);
  EXPECT_EQ(sut.executed.back().second.stale, ranks({1}));
  sut.arrive(1, 0);
  EXPECT_EQ(sut.merged.at(0).with, Version{1});
  EXPECT_TRUE(sut.verdict(1).end);
  EXPECT_FALSE(sut.verdict(1).fresh);
}

// Grace ---------------------------------------------------------------------------------------------------------------

TEST(WithGrace, ASyncFiresWithoutTheAbsentAndTheyMergeWhenTheyCome) {
  Agents sut(1, {0, 0, 0}, test::local_sgd(2, Lateness::merges, Grace{.fixed = seconds(3)}), 7);
  sut.arrive(0, 0);
  EXPECT_FALSE(sut.verdict(0).averaged);
  EXPECT_EQ(sut.verdict(0).next, Version{1});
  EXPECT_EQ(sut.verdict(0).next_round, Version{1});  // Reports every iteration.
  sut.arrive(2, 0);
  sut.arrive(0, 1);
  sut.arrive(1, 0);
  EXPECT_EQ(sut.engines[0].next_deadline(), sut.now + seconds(3));
  sut.after(seconds(3));
  EXPECT_EQ(sut.executed.at(0).second.fresh, ranks({0}));
  EXPECT_EQ(sut.executed.at(0).second.stale, ranks({1, 2}));
  EXPECT_THAT(sut.left, IsEmpty());
  sut.arrive(1, 1);
  EXPECT_EQ(sut.merged.at(0).with, Version{1});
  EXPECT_EQ(sut.verdict(1).next, Version{2});
}

TEST(WithGrace, MedianStepsMultiplyTheMedianOfWhatWorkersTook) {
  Agents sut(1, {0, 0}, test::local_sgd(2, Lateness::merges, Grace{.median_steps = 2}), 7);
  sut.compute = seconds(1);
  sut.arrive(0, 0);
  sut.compute = seconds(3);
  sut.arrive(1, 0);
  sut.compute = seconds(2);
  sut.arrive(0, 1);
  EXPECT_EQ(sut.engines[0].median_step(), seconds(2));
  EXPECT_EQ(sut.engines[0].next_deadline(), sut.now + seconds(4));
}

TEST(WithGrace, WhoComesInTheInstantInWhichItEndsIsPresent) {
  Agents sut(1, {0, 0}, test::local_sgd(1, Lateness::merges, Grace{.fixed = seconds(2)}), 7);
  sut.arrive(0, 0);
  sut.now += seconds(2);
  sut.arrive(1, 0);
  EXPECT_EQ(sut.executed.at(0).second.fresh, ranks({0, 1}));
}

TEST(WithGrace, AWorkerThatHasBeenSilentForLongIsNotWaitedForAgain) {
  Agents sut(1, {0, 0}, test::local_sgd(2, Lateness::skips, Grace{.median_steps = 2}), 99);
  int executed = 0;
  for (int t = 0; t < 40; ++t) {
    sut.now += seconds(1);
    sut.arrive(0, t);
    if (t % 2 == 0) continue;
    if (sut.engines[0].next_deadline() <= sut.now) sut.tick();
    if (sut.has_verdict(0)) {
      ++executed;
    } else {
      EXPECT_LT(sut.now.time_since_epoch(), seconds(14));
      sut.after(seconds(2));
      EXPECT_TRUE(sut.has_verdict(0));
    }
  }
  EXPECT_GT(executed, 10);
  EXPECT_THAT(sut.left, IsEmpty());
  sut.arrive(1, 0);  // Welcome back.
  EXPECT_EQ(sut.verdict(1).next, Version{40});
}

// First arrived, the others abandon -----------------------------------------------------------------------------------

TEST(Nonblocking, TheFirstEndsTheUpdateAndFinishedMiniBatchesCount) {
  Agents sut(1, {0, 0, 0}, test::nonblocking(), 5);
  sut.publish(2, 0);  // One of its mini-batches is done.
  sut.arrive(0, 0);
  EXPECT_THAT(sut.abandoned, ElementsAre(std::pair<std::size_t, Version>(0, Version{0})));
  EXPECT_EQ(sut.executed.at(0).second.fresh, ranks({0, 2}));
  EXPECT_EQ(sut.executed.at(0).second.stale, ranks({1}));
  EXPECT_EQ(sut.verdict(0).next, Version{1});
  EXPECT_FALSE(sut.has_verdict(2));  // The abandon word tells it.
}

TEST(Nonblocking, AReportThatCrossesTheAbandonmentIsAnswered) {
  Agents sut(1, {0, 0}, test::nonblocking(), 5);
  sut.publish(1, 0);
  sut.arrive(0, 0);
  sut.arrive(0, 1);
  sut.report(1, 0);
  EXPECT_EQ(sut.verdict(1).own, Version{0});
  EXPECT_EQ(sut.verdict(1).next, Version{2});
  EXPECT_THAT(sut.merged, IsEmpty());
}

TEST(Nonblocking, AReportBetweenSealAndExecutionIsAnsweredWithTheResultAndNeverMerged) {
  Agents sut(1, {0, 0}, test::nonblocking(), 5);
  sut.hold_executions = true;
  sut.arrive(0, 0);
  sut.arrive(1, 0);  // It had published nothing when the update was sealed.
  sut.release();
  EXPECT_EQ(sut.verdict(1).own, Version{0});
  EXPECT_EQ(sut.verdict(1).next, Version{1});
  EXPECT_THAT(sut.merged, IsEmpty());
  sut.arrive(1, 1);  // Is heard at once.
  EXPECT_EQ(sut.abandoned.back().second, Version{1});
}

}  // namespace
}  // namespace paceline::scheduler
