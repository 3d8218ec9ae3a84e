#include "algorithms/cluster/training/replica_exchange.h"

#include <gtest/gtest.h>

namespace paceline::cluster {
namespace {

using Exchange = ReplicaExchange;

constexpr NodeId kSelf{0};
constexpr NodeId kThere{1};
constexpr Instant kNow{};

Replica at(std::int64_t update) { return {nullptr, update, 8}; }

template <class Action>
std::vector<Action> of(const Exchange::Actions& actions) {
  std::vector<Action> found;
  for (const auto& action : actions)
    if (const auto* one = std::get_if<Action>(&action)) found.push_back(*one);
  return found;
}

TEST(ReplicaExchangeTest, EverybodyStartsFromRankZeroWhicheverComesFirst) {
  Exchange sut(kSelf, {kSelf, kSelf, kSelf});
  EXPECT_TRUE(sut.on_wanted(Rank{1}, kSelf, {}, {{Rank{0}, 0}}, kNow).empty()) << "nobody is asked: it is on its way";
  const auto given = of<Exchange::Give>(sut.on_captured(Rank{0}, at(0)));
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].rank, Rank{1});
  const auto later = of<Exchange::Give>(sut.on_wanted(Rank{2}, kSelf, {}, {}, kNow));
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].replica.update, 0);
}

TEST(ReplicaExchangeTest, TheStartGoesToEveryOtherNodeOnceAndIsNotSentOn) {
  const std::vector<NodeId> node_of{kSelf, kSelf, kThere, kThere};
  Exchange first(kSelf, node_of);
  const auto sent = of<Exchange::Send>(first.on_captured(Rank{0}, at(0)));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].node, kThere);
  Exchange other(kThere, node_of);
  (void)other.on_wanted(Rank{3}, kThere, {}, {}, kNow);
  const auto actions = other.on_captured(Rank{0}, at(0));
  EXPECT_EQ(of<Exchange::Give>(actions).size(), 1u);
  EXPECT_TRUE(of<Exchange::Send>(actions).empty());
}

TEST(ReplicaExchangeTest, RankZeroThatMissedAveragingsDoesNotStartAnew) {
  Exchange sut(kSelf, {kSelf, kSelf});
  (void)sut.on_captured(Rank{0}, at(0));
  const auto actions = sut.on_wanted(Rank{0}, kSelf, {}, {{Rank{0}, 5}, {Rank{1}, 9}}, kNow);
  EXPECT_TRUE(of<Exchange::Give>(actions).empty());
  ASSERT_EQ(of<Exchange::Capture>(actions).size(), 1u);
  EXPECT_EQ(of<Exchange::Capture>(actions)[0].donor, Rank{1});
}

/// Everybody has started.
Exchange started(const std::vector<NodeId>& node_of) {
  Exchange sut(kSelf, node_of);
  (void)sut.on_captured(Rank{0}, at(0));
  for (std::int32_t rank = 1; rank < static_cast<std::int32_t>(node_of.size()); ++rank)
    if (node_of[static_cast<std::size_t>(rank)] == kSelf) (void)sut.on_wanted(Rank{rank}, kSelf, {}, {}, kNow);
  return sut;
}

TEST(ReplicaExchangeTest, TheOneThatIsFurthestGives) {
  auto sut = started({kSelf, kSelf, kSelf});
  const auto asked =
      of<Exchange::Capture>(sut.on_wanted(Rank{2}, kSelf, {}, {{Rank{0}, 7}, {Rank{1}, 9}, {Rank{2}, 20}}, kNow));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].donor, Rank{1}) << "not the one that asks";
  const auto given = of<Exchange::Give>(sut.on_captured(Rank{1}, at(10)));
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].rank, Rank{2});
  EXPECT_EQ(given[0].replica.update, 10);
}

TEST(ReplicaExchangeTest, ADonorThatSaysNothingIsReplacedAfterPatience) {
  auto sut = started({kSelf, kSelf, kSelf});
  const Exchange::Donors donors{{Rank{0}, 7}, {Rank{1}, 9}};
  (void)sut.on_wanted(Rank{2}, kSelf, {}, donors, kNow);
  EXPECT_FALSE(sut.is_due(kNow + Exchange::kPatience - Duration(1)));
  EXPECT_TRUE(sut.is_due(kNow + Exchange::kPatience));
  const auto asked = of<Exchange::Capture>(sut.ask_again(donors, kNow + Exchange::kPatience));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].donor, Rank{0});
}

TEST(ReplicaExchangeTest, ANodeWithoutADonorAsksTheNext) {
  auto sut = started({kSelf, kThere});
  const auto asked = of<Exchange::AskNode>(sut.on_wanted(Rank{0}, kSelf, {}, {}, kNow));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].node, kThere);
  EXPECT_EQ(asked[0].rank, Rank{0});
}

TEST(ReplicaExchangeTest, ANodeThatIsLostIsNeitherAskedNorAnswered) {
  Exchange sut = started({kSelf, kThere});
  (void)sut.on_wanted(Rank{1}, kThere, {9}, {{Rank{0}, 5}}, kNow);
  ASSERT_EQ(of<Exchange::AskNode>(sut.on_wanted(Rank{0}, kSelf, {}, {{Rank{0}, 5}}, kNow)).size(), 1u);
  const auto alone = sut.on_node_gone(kThere, {{Rank{0}, 5}}, kNow);
  ASSERT_EQ(of<Exchange::GoOn>(alone).size(), 1u) << "its own is the newest that can be had";
  EXPECT_TRUE(of<Exchange::SendNone>(alone).empty());
  EXPECT_TRUE(sut.on_node_gone(kThere, {}, kNow).empty());
}

TEST(ReplicaExchangeTest, ANodeThatAsksIsSentWhatALocalWorkerGives) {
  auto sut = started({kSelf, kThere});
  const auto asked = of<Exchange::Capture>(sut.on_wanted(Rank{1}, kThere, {}, {{Rank{0}, 5}}, kNow));
  ASSERT_EQ(asked.size(), 1u);
  const auto sent = of<Exchange::Send>(sut.on_captured(Rank{0}, at(5)));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].node, kThere);
}

TEST(ReplicaExchangeTest, AnOlderStateThanTheOneThatServesIsNeitherAskedForNorGiven) {
  auto sut = started({kSelf, kSelf, kThere});
  const Exchange::Donors late{{Rank{1}, 19}};
  const auto asked = of<Exchange::AskNode>(sut.on_wanted(Rank{0}, kSelf, {20}, late, kNow));
  ASSERT_EQ(asked.size(), 1u) << "the local one is late itself";
  EXPECT_EQ(asked[0].need.least, 20);
  EXPECT_TRUE(of<Exchange::Give>(sut.on_captured(Rank{1}, at(19))).empty()) << "was asked for before";
  EXPECT_TRUE(sut.is_due(kNow)) << "it still waits";
  const auto given = of<Exchange::Give>(sut.on_captured(Rank{2}, at(20)));
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].rank, Rank{0});
  EXPECT_FALSE(sut.due());
}

TEST(ReplicaExchangeTest, ANodeThatAsksIsAnsweredWhenAWorkerIsFarEnough) {
  auto sut = started({kSelf, kThere});
  EXPECT_TRUE(sut.on_wanted(Rank{1}, kThere, {20}, {{Rank{0}, 19}}, kNow).empty());
  ASSERT_EQ(sut.due(), kNow + Exchange::kLook);
  const auto asked = of<Exchange::Capture>(sut.ask_again({{Rank{0}, 20}}, kNow + Exchange::kLook));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(of<Exchange::Send>(sut.on_captured(Rank{0}, at(20))).size(), 1u);
}

TEST(ReplicaExchangeTest, WhereNobodyCanBeAskedTheFurthestGoesOnWithItsOwn) {
  auto sut = started({kSelf, kSelf, kSelf});  // 0, which is further, is frozen.
  const Exchange::Donors alive{{Rank{1}, 7}, {Rank{2}, 8}};
  EXPECT_EQ(of<Exchange::Capture>(sut.on_wanted(Rank{1}, kSelf, {}, alive, kNow)).size(), 1u) << "2 has not asked";
  const auto own = of<Exchange::GoOn>(sut.on_wanted(Rank{2}, kSelf, {}, alive, kNow));
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0].rank, Rank{2});
  ASSERT_TRUE(sut.is_due(kNow + Exchange::kLook)) << "the other takes what that one has";
  const auto asked = of<Exchange::Capture>(sut.ask_again(alive, kNow + Exchange::kLook));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].donor, Rank{2});
}

TEST(ReplicaExchangeTest, WhoIsSlowIsWaitedFor) {
  auto sut = started({kSelf, kSelf, kSelf});
  const Exchange::Donors alive{{Rank{0}, 9}, {Rank{1}, 7}};
  (void)sut.on_wanted(Rank{1}, kSelf, {}, alive, kNow);
  for (int second = 1; second < 60; ++second) {
    const auto actions = sut.ask_again(alive, kNow + std::chrono::seconds(second));
    EXPECT_TRUE(of<Exchange::GoOn>(actions).empty()) << "0 computes; it answers between two updates";
  }
}

TEST(ReplicaExchangeTest, NobodyBeginsWithAModelOfItsOwn) {
  Exchange sut(kSelf, {kSelf, kSelf});
  (void)sut.on_wanted(Rank{1}, kSelf, {}, {{Rank{1}, 0}}, kNow);
  EXPECT_TRUE(of<Exchange::GoOn>(sut.ask_again({{Rank{1}, 0}}, kNow)).empty());
}

TEST(ReplicaExchangeTest, EveryOtherNodeIsAskedBefore) {
  constexpr NodeId kThird{2};
  auto sut = started({kSelf, kThere, kThird});
  const Exchange::Donors alive{{Rank{0}, 7}};
  EXPECT_EQ(of<Exchange::AskNode>(sut.on_wanted(Rank{0}, kSelf, {}, alive, kNow)).at(0).node, kThere);
  EXPECT_EQ(of<Exchange::AskNode>(sut.on_none(kThere, {}, alive, kNow)).at(0).node, kThird);
  const auto own = of<Exchange::GoOn>(sut.on_none(kThird, {}, alive, kNow));
  ASSERT_EQ(own.size(), 1u);
  EXPECT_EQ(own[0].rank, Rank{0});
}

TEST(ReplicaExchangeTest, OfTwoNodesWhereAllAskOneGoesOn) {
  const std::vector<NodeId> node_of{kSelf, kThere};
  auto here = started(node_of);
  Exchange there(kThere, node_of);
  (void)there.on_captured(Rank{0}, at(0));
  (void)there.on_wanted(Rank{1}, kThere, {}, {}, kNow);
  const Exchange::Donors zero{{Rank{0}, 7}};
  const Exchange::Donors one{{Rank{1}, 7}};
  (void)here.on_wanted(Rank{0}, kSelf, {}, zero, kNow);
  (void)there.on_wanted(Rank{1}, kThere, {}, one, kNow);
  const auto from_there = of<Exchange::SendNone>(there.on_wanted(Rank{0}, kSelf, {}, one, kNow));
  const auto from_here = of<Exchange::SendNone>(here.on_wanted(Rank{1}, kThere, {}, zero, kNow));
  ASSERT_EQ(from_there.size(), 1u);
  ASSERT_EQ(from_here.size(), 1u);
  EXPECT_EQ(from_there[0].node, kSelf);
  EXPECT_EQ(from_there[0].none.furthest.rank, Rank{1});
  EXPECT_EQ(of<Exchange::GoOn>(here.on_none(kThere, from_there[0].none, zero, kNow)).size(), 1u);
  EXPECT_TRUE(of<Exchange::GoOn>(there.on_none(kSelf, from_here[0].none, one, kNow)).empty());
}

// Workers that come back ---------------------------------------------------------------------------------------------

constexpr Exchange::Need kAfter7{.least = 8, .exact = true};

/// Of three, the last of which has another process that asks for a state.
Exchange with_one_back() {
  auto sut = started({kSelf, kSelf, kSelf});
  sut.on_return(Rank{2});
  EXPECT_TRUE(sut.on_wanted(Rank{2}, kSelf, {}, {{Rank{0}, 7}, {Rank{1}, 7}}, kNow).empty())
      << "it is not admitted yet";
  return sut;
}

TEST(ReplicaExchangeTest, WhoComesBackIsGivenExactlyTheStateAfterTheVersionThatItIsAdmittedAfter) {
  auto sut = with_one_back();
  const auto asked = of<Exchange::Capture>(sut.on_admitted(Rank{2}, kAfter7, {{Rank{0}, 7}, {Rank{1}, 7}}, kNow));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].from, 8) << "before the donor has come to it";
  EXPECT_TRUE(of<Exchange::Capture>(sut.ask_again({{Rank{0}, 8}, {Rank{1}, 8}}, kNow)).empty()) << "it is on its way";
  const auto given = of<Exchange::Give>(sut.on_captured(Rank{0}, at(8)));
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].rank, Rank{2});
}

TEST(ReplicaExchangeTest, WhoIsAdmittedBeforeItAsksIsServedWhenItDoes) {
  auto sut = started({kSelf, kSelf});
  sut.on_return(Rank{1});
  EXPECT_TRUE(sut.on_admitted(Rank{1}, kAfter7, {{Rank{0}, 7}, {Rank{1}, 0}}, kNow).empty());
  const auto asked = of<Exchange::Capture>(sut.on_wanted(Rank{1}, kSelf, {}, {{Rank{0}, 7}, {Rank{1}, 0}}, kNow));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].donor, Rank{0});
}

TEST(ReplicaExchangeTest, WhereTheDonorDiesOrFreezesOrIsPastItTheWorkerIsAdmittedAnew) {
  for (const Exchange::Donors& donors :
       {Exchange::Donors{{Rank{1}, 8}}, Exchange::Donors{{Rank{0}, 7, true}, {Rank{1}, 8}},
        Exchange::Donors{{Rank{0}, 9}, {Rank{1}, 8}}}) {
    auto sut = with_one_back();
    (void)sut.on_admitted(Rank{2}, kAfter7, {{Rank{0}, 7}, {Rank{1}, 7}}, kNow);
    const auto actions = donors.size() == 1 ? sut.on_left(Rank{0}, donors, kNow) : sut.ask_again(donors, kNow);
    ASSERT_EQ(of<Exchange::Readmit>(actions).size(), 1u);
    EXPECT_EQ(of<Exchange::Readmit>(actions)[0].rank, Rank{2});
    EXPECT_TRUE(of<Exchange::Give>(sut.on_captured(Rank{0}, at(9))).empty()) << "not before it is";
    const auto asked = of<Exchange::Capture>(sut.on_admitted(Rank{2}, {10, true}, {{Rank{1}, 9}}, kNow));
    ASSERT_EQ(asked.size(), 1u);
    EXPECT_EQ(asked[0].donor, Rank{1});
  }
}

TEST(ReplicaExchangeTest, WhereTheDonorBeganTheUpdateWhileItWasAskedTheWorkerIsAdmittedAnew) {
  for (const std::int64_t step : {7, 8, 9}) {
    auto sut = with_one_back();
    ASSERT_EQ(of<Exchange::Capture>(sut.on_admitted(Rank{2}, kAfter7, {{Rank{0}, 7}}, kNow)).size(), 1u);
    EXPECT_EQ(of<Exchange::Readmit>(sut.on_asked({Rank{0}, step})).size(), step > 7 ? 1u : 0u) << step;
    EXPECT_EQ(of<Exchange::Give>(sut.on_captured(Rank{0}, at(8))).size(), step > 7 ? 0u : 1u) << step;
  }
}

TEST(ReplicaExchangeTest, ANodeThatAskedIsToldThatTheDonorBeganTheUpdateWhileItWasAsked) {
  auto sut = started({kSelf, kSelf, kThere});
  ASSERT_EQ(of<Exchange::Capture>(sut.on_wanted(Rank{2}, kThere, kAfter7, {{Rank{0}, 7}}, kNow)).size(), 1u);
  const auto told = of<Exchange::SendNone>(sut.on_asked({Rank{0}, 8}));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].none.holds) << "it asks to be admitted anew";
}

TEST(ReplicaExchangeTest, ADonorIsAskedForOneExactStateAtATime) {
  auto sut = started({kSelf, kSelf, kSelf});
  for (const int rank : {1, 2}) {
    sut.on_return(Rank{rank});
    (void)sut.on_wanted(Rank{rank}, kSelf, {}, {{Rank{0}, 7}}, kNow);
  }
  EXPECT_EQ(of<Exchange::Capture>(sut.on_admitted(Rank{1}, kAfter7, {{Rank{0}, 7}}, kNow)).size(), 1u);
  EXPECT_TRUE(of<Exchange::Capture>(sut.on_admitted(Rank{2}, {9, true}, {{Rank{0}, 7}}, kNow)).empty());
  EXPECT_EQ(of<Exchange::Give>(sut.on_captured(Rank{0}, at(8))).size(), 1u);
  ASSERT_TRUE(sut.is_due(kNow));
  const auto next = of<Exchange::Capture>(sut.ask_again({{Rank{0}, 8}}, kNow));
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].from, 9);
}

TEST(ReplicaExchangeTest, ADonorThatGaveAnOlderStateIsAskedForTheExactOneAgain) {
  auto sut = with_one_back();
  (void)sut.on_admitted(Rank{2}, kAfter7, {{Rank{0}, 6}}, kNow);
  EXPECT_TRUE(of<Exchange::Give>(sut.on_captured(Rank{0}, at(6))).empty());
  EXPECT_EQ(of<Exchange::Capture>(sut.ask_again({{Rank{0}, 6}}, kNow)).size(), 1u);
}

TEST(ReplicaExchangeTest, ALaterStateThanTheExactOneIsNotGiven) {
  auto sut = with_one_back();
  (void)sut.on_admitted(Rank{2}, kAfter7, {{Rank{0}, 7}}, kNow);
  const auto actions = sut.on_captured(Rank{0}, at(9));
  EXPECT_TRUE(of<Exchange::Give>(actions).empty());
  EXPECT_EQ(of<Exchange::Readmit>(actions).size(), 1u);
}

TEST(ReplicaExchangeTest, ANodeWhoseOnlyWorkerComesBackAsksAnotherForTheExactState) {
  auto here = started({kSelf, kThere});
  here.on_return(Rank{0});
  (void)here.on_wanted(Rank{0}, kSelf, {}, {}, kNow);
  const auto asked = of<Exchange::AskNode>(here.on_admitted(Rank{0}, kAfter7, {{Rank{0}, 0}}, kNow));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].need, kAfter7);
  Exchange there(kThere, {kSelf, kThere});
  (void)there.on_captured(Rank{0}, at(0));
  (void)there.on_wanted(Rank{1}, kThere, {}, {}, kNow);
  const auto captured = of<Exchange::Capture>(there.on_wanted(Rank{0}, kSelf, asked[0].need, {{Rank{1}, 7}}, kNow));
  ASSERT_EQ(captured.size(), 1u);
  EXPECT_EQ(captured[0].from, 8);
  EXPECT_TRUE(there.on_wanted(Rank{0}, kSelf, asked[0].need, {{Rank{1}, 8}}, kNow).empty()) << "it asks again";
  EXPECT_EQ(of<Exchange::Send>(there.on_captured(Rank{1}, at(8))).size(), 1u);
  EXPECT_EQ(of<Exchange::Give>(here.on_captured(Rank{1}, at(8))).size(), 1u);
}

TEST(ReplicaExchangeTest, ANodeThatHasMissedTheExactStateSaysSo) {
  Exchange there(kThere, {kSelf, kThere});
  (void)there.on_captured(Rank{0}, at(0));
  (void)there.on_wanted(Rank{1}, kThere, {}, {}, kNow);
  const auto none = of<Exchange::SendNone>(there.on_wanted(Rank{0}, kSelf, kAfter7, {{Rank{1}, 8}}, kNow));
  ASSERT_EQ(none.size(), 1u);
  EXPECT_TRUE(none[0].none.holds);
  auto here = started({kSelf, kThere});
  here.on_return(Rank{0});
  (void)here.on_wanted(Rank{0}, kSelf, {}, {}, kNow);
  (void)here.on_admitted(Rank{0}, kAfter7, {}, kNow);
  EXPECT_EQ(of<Exchange::Readmit>(here.on_none(kThere, none[0].none, {}, kNow)).size(), 1u);
}

TEST(ReplicaExchangeTest, WhoComesBackGivesNothingBeforeItHasLoaded) {
  auto sut = started({kSelf, kSelf, kSelf});
  sut.on_return(Rank{1});
  EXPECT_TRUE(of<Exchange::Capture>(sut.on_wanted(Rank{2}, kSelf, {5}, {{Rank{0}, 3}, {Rank{1}, 9}}, kNow)).empty());
}

TEST(ReplicaExchangeTest, WhoComesBackWhereNobodyHasAModelAnyMoreIsLost) {
  auto sut = started({kSelf, kSelf});
  for (const int rank : {0, 1}) sut.on_return(Rank{rank});
  const auto lost = of<Exchange::Lost>(sut.on_wanted(Rank{0}, kSelf, {}, {}, kNow));
  ASSERT_EQ(lost.size(), 1u);
  auto frozen = started({kSelf, kSelf});
  frozen.on_return(Rank{1});
  EXPECT_TRUE(of<Exchange::Lost>(frozen.on_wanted(Rank{1}, kSelf, {}, {{Rank{0}, 7, true}}, kNow)).empty());
}

TEST(ReplicaExchangeTest, AtTheJobsEndWhoComesBackGetsTheLastState) {
  auto sut = with_one_back();
  (void)sut.on_admitted(Rank{2}, kAfter7, {{Rank{0}, 5}}, kNow);
  EXPECT_EQ(of<Exchange::Capture>(sut.on_end(6, {{Rank{0}, 6}}, kNow)).size(), 1u);
  EXPECT_TRUE(sut.on_end(6, {{Rank{0}, 6}}, kNow).empty()) << "said again it is no news";
  EXPECT_EQ(of<Exchange::Give>(sut.on_captured(Rank{0}, at(6))).size(), 1u);
}

}  // namespace
}  // namespace paceline::cluster
