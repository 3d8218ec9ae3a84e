#include "scheduler/record/replay.h"

#include <gtest/gtest.h>

namespace paceline::scheduler {
namespace {

using Kind = Decision::Kind;

Decision joined(int rank) { return {.kind = Kind::joined, .rank = Rank{rank}}; }
Decision arrived(int rank, int t) { return {.kind = Kind::arrived, .rank = Rank{rank}, .version = Version{t}}; }
Decision executed(int t) { return {.kind = Kind::executed, .version = Version{t}}; }
Decision sealed(int t, std::vector<Decision::Contribution> found) {
  return {.kind = Kind::sealed, .version = Version{t}, .contributions = std::move(found)};
}
Decision::Contribution found(int rank, int iteration, int bodies = 1) {
  return {Rank{rank}, Version{iteration}, bodies};
}
Decision::Contribution nothing(int rank) { return {Rank{rank}, std::nullopt, 0}; }

TEST(ReplayTest, WhatComesEarlyWaitsForItsTurn) {
  Replay replay({arrived(1, 0), arrived(0, 0)});
  replay.happened(arrived(0, 0));
  EXPECT_FALSE(replay.is_due()) << "worker 1 was first";
  replay.happened(arrived(1, 0));
  ASSERT_TRUE(replay.is_due());
  EXPECT_EQ(replay.take().rank, Rank{1});
  ASSERT_TRUE(replay.is_due());
  EXPECT_EQ(replay.take().rank, Rank{0});
  EXPECT_EQ(replay.next(), nullptr);
  EXPECT_FALSE(replay.is_due());
}

TEST(ReplayTest, TheRecordedTimesCount) {
  Decision then = arrived(0, 4);
  then.at = Instant(Duration(77));
  then.took = Duration(5);
  Replay replay({then});
  replay.happened(arrived(0, 4));
  EXPECT_EQ(replay.take(), then);
}

TEST(ReplayTest, AnArrivalOfAnotherIterationIsNotTheOne) {
  Replay replay({arrived(0, 1)});
  replay.happened(arrived(0, 0));
  EXPECT_FALSE(replay.is_due());
}

TEST(ReplayTest, ActivationsDeadlinesAndDeathsNeedNothing) {
  Replay replay({{.kind = Kind::activated, .node = NodeId{1}, .version = Version{0}},
                 {.kind = Kind::counted, .version = Version{0}},
                 {.kind = Kind::looked},
                 {.kind = Kind::gone, .rank = Rank{2}}});
  EXPECT_TRUE(replay.will_go(Rank{2}));
  EXPECT_FALSE(replay.will_go(Rank{1}));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(replay.is_due()) << i;
    (void)replay.take();
  }
  EXPECT_FALSE(replay.will_go(Rank{2}));
}

TEST(ReplayTest, WorkersMayEndEarlierThanTheJob) {
  Replay replay({{.kind = Kind::ends_apart, .version = Version{9}, .contributions = {found(0, 9, 0), found(1, 4, 0)}}});
  EXPECT_EQ(replay.ends(), Version{9});
  EXPECT_EQ(replay.ends(Rank{0}), Version{9});
  EXPECT_EQ(replay.ends(Rank{1}), Version{4});
  EXPECT_EQ(replay.next_contribution(Rank{1}), nullptr) << "it is no seal";
  EXPECT_EQ(replay.may_publish(Rank{1}), INT64_MAX);
  ASSERT_TRUE(replay.is_due()) << "what was agreed on then needs nothing";
  (void)replay.take();
  EXPECT_EQ(replay.may_publish(Rank{1}), INT64_MAX);
  EXPECT_EQ(Replay({{.kind = Kind::ends, .version = Version{9}}}).ends(Rank{1}), Version{9});
}

TEST(ReplayTest, SealsAveragingsAndMergesAreTakenByTheShell) {
  Replay replay({sealed(0, {found(0, 0)}), executed(0), {.kind = Kind::merged, .rank = Rank{1}}});
  EXPECT_FALSE(replay.is_due());
  EXPECT_TRUE(replay.is_next(sealed(0, {}))) << "what it found is no part of what it is";
  EXPECT_FALSE(replay.is_next(sealed(1, {})));
  (void)replay.take();
  EXPECT_TRUE(replay.is_next(executed(0)));
  EXPECT_FALSE(replay.is_due());
}

TEST(ReplayTest, NobodyPublishesPastWhatItsNextSealFound) {
  Replay replay(
      {joined(0), sealed(5, {found(0, 3), found(1, 5)}), sealed(6, {found(0, 3)}), sealed(7, {found(0, 7, 2)})});
  const auto upto = [](int iteration, int bodies) { return Replay::publication(iteration, bodies); };
  EXPECT_EQ(replay.joining(), std::set<Rank>{Rank{0}});
  EXPECT_EQ(replay.may_publish(Rank{0}), upto(3, 1));
  EXPECT_EQ(replay.may_publish(Rank{1}), upto(5, 1));
  (void)replay.take();
  (void)replay.take();
  EXPECT_EQ(replay.sealed(Rank{0}), Version{5});
  EXPECT_EQ(replay.sealed(Rank{7}), Version{-1});
  EXPECT_EQ(replay.may_publish(Rank{0}), upto(3, 1)) << "the next seal took the same once more";
  EXPECT_EQ(replay.may_publish(Rank{1}), INT64_MAX) << "no seal is left";
  (void)replay.take();
  EXPECT_EQ(replay.may_publish(Rank{0}), upto(7, 2));
  EXPECT_LT(replay.may_publish(Rank{0}), upto(7, 3));
  EXPECT_LT(replay.may_publish(Rank{0}), upto(8, 1));
  (void)replay.take();
  EXPECT_EQ(replay.may_publish(Rank{0}), INT64_MAX);
}

TEST(ReplayTest, WhoContributedNothingToAnUpdateDoesNotStartIt) {
  Replay replay({sealed(4, {nothing(0)})});
  EXPECT_EQ(replay.next_contribution(Rank{0}), nullptr);
  EXPECT_GE(replay.may_publish(Rank{0}), Replay::publication(3, 65536));
  EXPECT_LT(replay.may_publish(Rank{0}), Replay::publication(4, 1));
}

TEST(ReplayTest, ALateStarterKeepsItsStartForTheSealThatTakesIt) {
  Replay replay({sealed(1, {nothing(0)}), sealed(2, {found(0, -1, 0)})});
  EXPECT_EQ(replay.may_publish(Rank{0}), Replay::publication(-1, 0));
}

}  // namespace
}  // namespace paceline::scheduler
