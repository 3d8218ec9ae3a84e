#include "scheduler/mixing/batch_engine.h"

#include <gtest/gtest.h>

namespace paceline::scheduler {
namespace {

using namespace std::chrono_literals;
using Weight = BatchEngine::Weight;

constexpr Instant kStart{};
constexpr Version kFirst{0};

/// What came out, as words.
std::vector<std::string> said(const BatchEngine::Actions& actions) {
  struct Words {
    std::string operator()(const BatchEngine::Signal& a) const { return "signal " + to_string(a.version); }
    std::string operator()(const BatchEngine::Tell& a) const {
      return "tell " + to_string(a.to) + " " + to_string(a.version) +
             (a.bodies ? " did " + std::to_string(*a.bodies) : "");
    }
    std::string operator()(const BatchEngine::Step& a) const {
      return "step " + to_string(a.rank) + " " + to_string(a.version) + " by " + std::to_string(a.scale).substr(0, 6);
    }
    std::string operator()(const BatchEngine::StandIn& a) const {
      return "stand in for " + to_string(a.rank) + " " + to_string(a.version);
    }
  };
  std::vector<std::string> words;
  for (const auto& action : actions) words.push_back(std::visit(Words{}, action));
  return words;
}

using Said = std::vector<std::string>;

/// Workers 0 and 1 here, worker 2 on node 1; N = 4.
BatchEngine engine(Weight weight = Weight::share, bool drops = true) {
  BatchEngine engine({NodeId{0}, {NodeId{0}, NodeId{0}, NodeId{1}}, 4, drops, weight});
  for (const int rank : {0, 1}) engine.on_begun(Rank{rank}, kFirst, kStart);
  return engine;
}

TEST(BatchEngineTest, TheFirstWholeBatchEndsTheUpdateForAllAndEverybodyWeighsWhatItDid) {
  auto sut = engine();
  EXPECT_EQ(said(sut.on_done(Rank{0}, kFirst, 4, kStart)), (Said{"signal 0", "tell 1 0", "step 0 0 by 0.2500"}));
  EXPECT_EQ(said(sut.on_done(Rank{1}, kFirst, 3, kStart)), Said{"step 1 0 by 0.2500"});
  EXPECT_FALSE(sut.computing(Rank{1}));
}

TEST(BatchEngineTest, TwoThatSignalAreOneSignal) {
  auto sut = engine();
  EXPECT_EQ(said(sut.on_signal(kFirst, kStart)), Said{"signal 0"});
  EXPECT_TRUE(sut.on_signal(kFirst, kStart).empty());
  EXPECT_EQ(said(sut.on_done(Rank{0}, kFirst, 4, kStart)), Said{"step 0 0 by 0.2500"});
}

TEST(BatchEngineTest, TheLiteralReadingWeighsTwice) {
  auto sut = engine(Weight::share_squared);
  EXPECT_EQ(said(sut.on_done(Rank{1}, kFirst, 2, kStart)), Said{"step 1 0 by 0.1250"});
}

TEST(BatchEngineTest, WhereAllMiniBatchesWeighTheSameNobodyStepsBeforeAllAreCounted) {
  auto sut = engine(Weight::of_all);
  EXPECT_EQ(said(sut.on_done(Rank{0}, kFirst, 4, kStart)), (Said{"signal 0", "tell 1 0"}));
  EXPECT_EQ(said(sut.on_done(Rank{1}, kFirst, 0, kStart)), (Said{"stand in for 1 0", "tell 1 0 did 4"}));
  EXPECT_EQ(said(sut.on_counts(NodeId{1}, kFirst, 2)), Said{"step 0 0 by 0.5000"}) << "3 / (4 + 0 + 2)";
}

TEST(BatchEngineTest, TheDeadAreNotCounted) {
  auto sut = engine(Weight::of_all);
  (void)sut.on_done(Rank{0}, kFirst, 4, kStart);
  EXPECT_EQ(said(sut.on_gone(Rank{1})), Said{"tell 1 0 did 4"});
  EXPECT_EQ(said(sut.on_gone(Rank{2})), Said{"step 0 0 by 0.7500"});
}

TEST(BatchEngineTest, WhoIsBehindIsTooLateForWhatIsOver) {
  auto sut = engine();
  (void)sut.on_signal(Version{1}, kStart);
  EXPECT_TRUE(sut.is_too_late_for(kFirst));
  EXPECT_TRUE(sut.is_too_late_for(Version{1}));
  EXPECT_FALSE(sut.is_too_late_for(Version{2})) << "a signal never ends a later update";
  EXPECT_FALSE(engine(Weight::share, false).is_too_late_for(kFirst));
}

TEST(BatchEngineTest, ASignalIsToBeAnsweredWithinTwoMiniBatches) {
  auto sut = engine();
  sut.on_pace(Rank{1}, 100ms);
  EXPECT_FALSE(sut.next_deadline());
  (void)sut.on_done(Rank{0}, kFirst, 4, kStart + 1s);
  ASSERT_EQ(sut.unanswered().size(), 1u);
  EXPECT_EQ(sut.unanswered()[0].rank, Rank{1});
  EXPECT_EQ(sut.unanswered()[0].version, kFirst);
  EXPECT_EQ(sut.unanswered()[0].until, kStart + 1200ms);
  EXPECT_EQ(sut.next_deadline(), kStart + 1200ms);
  EXPECT_EQ(said(sut.on_done(Rank{1}, kFirst, 0, kStart + 1200ms)), Said{"stand in for 1 0"});
  EXPECT_TRUE(sut.unanswered().empty());

  sut.on_begun(Rank{1}, Version{1}, kStart + 2s);
  EXPECT_TRUE(sut.unanswered().empty()) << "nobody waits for it";
}

TEST(BatchEngineTest, WhereWhatIsUnderWayCountsEverybodyIsWaitedFor) {
  auto sut = engine(Weight::share, false);
  (void)sut.on_done(Rank{0}, kFirst, 4, kStart);
  EXPECT_TRUE(sut.unanswered().empty());
  EXPECT_FALSE(sut.next_deadline());
}

TEST(BatchEngineTest, WhatIsSettledStaysSo) {
  auto sut = engine();
  (void)sut.on_signal(kFirst, kStart);
  (void)sut.on_done(Rank{1}, kFirst, 0, kStart);
  EXPECT_TRUE(sut.on_done(Rank{1}, kFirst, 4, kStart).empty());
  EXPECT_TRUE(sut.on_done(Rank{1}, Version{1}, 4, kStart).empty()) << "it has not begun that";
}

}  // namespace
}  // namespace paceline::scheduler
