#include <gmock/gmock.h>

#include <optional>

#include "scheduler/rounds/round_engine.h"
#include "tests/support/rounds/agents.h"

// A worker that has left, and has another process, comes back into the rounds.

namespace paceline::scheduler {
namespace {

using std::chrono::seconds;
using test::Agents;
using test::ranks;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::optional<Version> kAny = std::nullopt;

void all_arrive(Agents& sut, std::initializer_list<std::int32_t> workers, std::int64_t t) {
  for (const auto rank : workers) sut.arrive(rank, t);
  sut.deliver_all();
}

TEST(Returning, WhereAllWaitItIsAdmittedAfterTheVersionThatIsOpenAndWaitedForFromTheNext) {
  Agents sut(1, {0, 0, 0}, test::allreduce(), 9);
  all_arrive(sut, {0, 1, 2}, 0);
  sut.gone(2);
  all_arrive(sut, {0, 1}, 1);
  sut.return_of(2);
  ASSERT_THAT(sut.admitted, SizeIs(1));
  EXPECT_EQ(sut.admitted[0].after, Version{2}) << "nobody has gone beyond what is still open";
  all_arrive(sut, {0, 1}, 2);
  ASSERT_THAT(sut.executed, SizeIs(3));
  EXPECT_EQ(sut.executed[2].second.fresh, ranks({0, 1})) << "it takes no part in that one";
  all_arrive(sut, {0, 1}, 3);
  EXPECT_THAT(sut.executed, SizeIs(3)) << "it is waited for";
  all_arrive(sut, {2}, 3);
  ASSERT_THAT(sut.executed, SizeIs(4));
  EXPECT_EQ(sut.executed[3].second.fresh, ranks({0, 1, 2}));
  EXPECT_EQ(sut.verdict(2).next, Version{4});
}

TEST(Returning, ItIsNotAdmittedWhileItsWindowIsNeeded) {
  Agents sut(1, {0, 0, 0}, test::allreduce(), 9);
  sut.hold_executions = true;
  for (const int rank : {0, 1, 2}) sut.arrive(rank, 0);
  sut.gone(2);  // What it had published is being added up.
  EXPECT_FALSE(sut.engines[0].is_free(Rank{2}));
  sut.release();
  EXPECT_TRUE(sut.engines[0].is_free(Rank{2}));
  EXPECT_FALSE(sut.engines[0].is_free(Rank{1})) << "it has not left";
}

TEST(Returning, OneThatComesBackInTheMiddleOfAnAveragingIsAdmittedWhenThatIsDone) {
  Agents sut(1, {0, 0, 0}, test::allreduce(), 9);
  sut.gone(2);
  sut.hold_executions = true;
  for (const int rank : {0, 1}) sut.arrive(rank, 0);
  sut.return_of(2);
  EXPECT_THAT(sut.admitted, IsEmpty());
  sut.release();
  ASSERT_THAT(sut.admitted, SizeIs(1));
  EXPECT_EQ(sut.admitted[0].after, Version{1});
}

TEST(Returning, WithAPeriodItComesInAtAnAverageOfAll) {
  Agents sut(1, {0, 0}, test::local_sgd(4), 19);
  sut.gone(1);
  sut.return_of(1);
  ASSERT_THAT(sut.admitted, SizeIs(1));
  EXPECT_EQ(sut.admitted[0].after, Version{3});
}

TEST(Returning, OrOfAllWhereGroupsWaitInBetween) {
  Agents sut(1, {0, 0, 0, 0}, test::wagma(4, Lateness::waits), 19);
  sut.gone(3);
  sut.return_of(3);
  ASSERT_THAT(sut.admitted, SizeIs(1));
  EXPECT_EQ(sut.admitted[0].after, Version{3});
}

TEST(Returning, AnotherNodeThatHasArrivedAlreadyMayHaveGoneOn) {
  Agents sut(2, {0, 0, 1}, test::allreduce(), 9);
  sut.gone(1);
  sut.arrive(2, 0);  // It is at version 0, which worker 0 of this node still computes.
  sut.deliver_all();
  sut.return_of(1);
  EXPECT_THAT(sut.admitted, IsEmpty());
  all_arrive(sut, {0}, 0);
  ASSERT_THAT(sut.admitted, SizeIs(1));
  EXPECT_EQ(sut.admitted[0].after, Version{1});
  all_arrive(sut, {0, 2}, 1);
  all_arrive(sut, {0, 2}, 2);
  EXPECT_FALSE(sut.has_verdict(2)) << "all nodes wait";
  all_arrive(sut, {1}, 2);
  EXPECT_TRUE(sut.has_verdict(2));
}

TEST(Returning, TheOnlyWorkerOfANodeComesBackToo) {
  Agents sut(2, {0, 1}, test::allreduce(), 9);
  sut.gone(1);
  all_arrive(sut, {0}, 0);
  sut.return_of(1);
  ASSERT_THAT(sut.admitted, SizeIs(1));
  EXPECT_EQ(sut.admitted[0].after, Version{1});
  all_arrive(sut, {0}, 1);
  all_arrive(sut, {0}, 2);
  EXPECT_FALSE(sut.has_verdict(0));
  all_arrive(sut, {1}, 2);
  EXPECT_TRUE(sut.has_verdict(0));
}

TEST(Returning, OneWhoseStateCannotBeHadIsAdmittedAnewAndNotWaitedForMeanwhile) {
  Agents sut(1, {0, 0, 0}, test::allreduce(), 9);
  sut.gone(2);
  sut.return_of(2);
  all_arrive(sut, {0, 1}, 0);
  all_arrive(sut, {0, 1}, 1);
  EXPECT_FALSE(sut.has_verdict(0));
  sut.return_of(2);
  EXPECT_TRUE(sut.has_verdict(0)) << "they go on";
  ASSERT_THAT(sut.admitted, SizeIs(2));
  EXPECT_EQ(sut.admitted[1].after, Version{2});
}

TEST(Returning, OneThatDiesAgainOnItsWayIsWaitedForNoLonger) {
  Agents sut(1, {0, 0}, test::allreduce(), 9);
  sut.gone(1);
  sut.return_of(1);
  all_arrive(sut, {0}, 0);
  all_arrive(sut, {0}, 1);
  EXPECT_FALSE(sut.has_verdict(0));
  sut.gone(1);
  EXPECT_TRUE(sut.has_verdict(0));
}

TEST(Returning, OneThatDiesBeforeItIsAdmittedIsNot) {
  Agents sut(1, {0, 0}, test::allreduce(), 9);
  sut.gone(1);
  sut.hold_executions = true;
  sut.arrive(0, 0);
  sut.return_of(1);
  sut.gone(1);
  sut.release();
  EXPECT_THAT(sut.admitted, IsEmpty());
}

TEST(Returning, OneThatIsThereAndTrainsDoesNotComeBack) {
  Agents sut(1, {0, 0}, test::allreduce(), 9);
  sut.return_of(1);
  EXPECT_THAT(sut.admitted, IsEmpty());
  sut.gone(1);
  sut.return_of(1);
  all_arrive(sut, {0}, 0);
  all_arrive(sut, {0, 1}, 1);
  sut.return_of(1);
  EXPECT_THAT(sut.admitted, SizeIs(1)) << "it has arrived: it is back";
}

TEST(Returning, PatienceBeginsWhenItIsWaitedFor) {
  Agents sut(1, {0, 0, 0}, test::allreduce(), 9);
  sut.gone(2);
  sut.after(seconds(100));
  sut.return_of(2);
  all_arrive(sut, {0, 1}, 0);
  all_arrive(sut, {0, 1}, 1);
  sut.after(seconds(9));
  EXPECT_THAT(sut.left, IsEmpty());
  sut.after(seconds(2));
  ASSERT_THAT(sut.left, SizeIs(1));
  EXPECT_EQ(sut.left[0].rank, Rank{2});
  EXPECT_TRUE(sut.has_verdict(0));
}

TEST(Returning, WhereNobodyWaitsItComesInWhenItArrivesWithWhateverIsCurrent) {
  Agents sut(1, {0, 0, 0, 0}, test::wagma(4), 19);
  sut.gone(2);
  sut.arrive(0, 0);
  sut.return_of(2);
  ASSERT_THAT(sut.admitted, SizeIs(1));
  EXPECT_EQ(sut.admitted[0].after, kAny);
  EXPECT_TRUE(sut.admitted[0].may_skip);
  for (const std::int64_t t : {1, 2, 3}) all_arrive(sut, {0, 1, 3}, t);
  EXPECT_TRUE(sut.has_verdict(0)) << "not even at an average of all is it waited for";
  all_arrive(sut, {2}, 4);
  EXPECT_TRUE(sut.has_verdict(2));
}

TEST(Returning, OneWhoseVersionHasGoneOnWithoutItHasNoPartInItAndGoesOn) {
  Agents sut(1, {0, 0, 0, 0}, test::wagma(4), 19);
  sut.gone(2);
  sut.arrive(0, 0);
  sut.return_of(2);
  all_arrive(sut, {0, 1, 3}, 1);
  all_arrive(sut, {2}, 1);
  for (const auto& merge : sut.merged) EXPECT_NE(merge.rank, Rank{2}) << "there is nothing to merge with";
  ASSERT_TRUE(sut.has_verdict(2));
  EXPECT_FALSE(sut.verdict(2).fresh || sut.verdict(2).averaged);
  EXPECT_EQ(sut.verdict(2).next, Version{2});
  all_arrive(sut, {2, 0, 1, 3}, 2);
  EXPECT_TRUE(sut.verdict(2).fresh && sut.verdict(2).averaged) << "now it takes part";
}

TEST(Returning, WhereUpdatesAreAbandonedItDoesNotSkip) {
  Agents sut(1, {0, 0}, test::nonblocking(), 9);
  sut.gone(1);
  sut.arrive(0, 0);
  sut.return_of(1);
  ASSERT_THAT(sut.admitted, SizeIs(1));
  EXPECT_EQ(sut.admitted[0].after, kAny);
  EXPECT_FALSE(sut.admitted[0].may_skip) << "all have the same model";
  sut.publish(1, 1);
  sut.arrive(0, 1);
  EXPECT_EQ(sut.executed.back().second.fresh, ranks({0, 1})) << "what it has done counts, though it has not arrived";
}

TEST(Returning, WhereTheJobHasEndedItGetsTheLastState) {
  Agents sut(1, {0, 0}, test::allreduce(), 0);
  sut.gone(1);
  sut.arrive(0, 0);
  sut.return_of(1);
  ASSERT_THAT(sut.admitted, SizeIs(1));
  EXPECT_EQ(sut.admitted[0].after, Version{0});
  EXPECT_TRUE(sut.verdict(0).end);
}

TEST(Returning, AQuorumCountsItAgainWhenItIsBack) {
  const test::TestPlan::Answers quorum{.round =
                                           [](Version) {
                                             Round round{Round::Kind::sync, Trigger::quorum, Lateness::accumulates, {}};
                                             round.payload = Payload::gradients;
                                             round.quorum = 3;
                                             return round;
                                           },
                                       .groups = {},
                                       .payload = Payload::gradients};
  Agents sut(2, {0, 0, 1}, quorum, 9);
  sut.gone(2);
  sut.deliver_all();
  all_arrive(sut, {0, 1}, 0);
  EXPECT_TRUE(sut.has_verdict(0)) << "as many as are left";
  sut.return_of(2);
  ASSERT_THAT(sut.admitted, SizeIs(1));
  all_arrive(sut, {2}, 1);
  all_arrive(sut, {0}, 1);
  EXPECT_FALSE(sut.has_verdict(0)) << "three are left again";
  all_arrive(sut, {1}, 1);
  EXPECT_TRUE(sut.has_verdict(0));
}

}  // namespace
}  // namespace paceline::scheduler
