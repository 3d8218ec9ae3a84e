#include "scheduler/views/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <variant>
#include <vector>

namespace paceline::scheduler {
namespace {

using On = Agreement::On;
using Actions = Agreement::Actions;
using Ask = Agreement::Ask;
using Decide = Agreement::Decide;

const std::set<NodeId> kAll{NodeId{0}, NodeId{1}, NodeId{2}};
const std::set<NodeId> kWithoutTwo{NodeId{0}, NodeId{1}};

class AgreementTest : public ::testing::Test {
 protected:
  Actions answer(int node, On what, int v, const std::set<NodeId>& left = kAll) {
    return sut.on_answer(NodeId{node}, what, Version{v}, left);
  }
  Agreement sut;
};

TEST_F(AgreementTest, TheHighestVersionThatSomebodyHasBegunIsDecided) {
  EXPECT_EQ(sut.wish(On::end), Actions{Ask{On::end}});
  EXPECT_EQ(answer(0, On::end, 4), Actions{});
  EXPECT_EQ(answer(2, On::end, 7), Actions{});
  EXPECT_EQ(answer(1, On::end, 5), (Actions{Decide{On::end, Version{7}}}));
  EXPECT_EQ(answer(1, On::end, 9), Actions{}) << "nobody asks any more";
}

TEST_F(AgreementTest, OneThatIsLostIsNotWaitedFor) {
  (void)sut.wish(On::end);
  (void)answer(0, On::end, 4);
  (void)answer(1, On::end, 5);
  EXPECT_EQ(sut.on_lost(kWithoutTwo), (Actions{Decide{On::end, Version{5}}}));
  EXPECT_EQ(sut.on_lost(kWithoutTwo), Actions{});
}

TEST_F(AgreementTest, WhatAnotherLeaderHasDecidedIsNotAskedAgain) {
  sut.on_decided(On::graph, Version{6});
  EXPECT_EQ(sut.wish(On::graph), Actions{Ask{On::graph}}) << "there may be a further one";
  for (const int node : {0, 1, 2})
    EXPECT_EQ(answer(node, On::graph, 4), node < 2 ? Actions{} : (Actions{Decide{On::graph, Version{6}}}));
  sut.on_decided(On::end, Version{9});
  EXPECT_EQ(sut.wish(On::end), Actions{});
  EXPECT_EQ(sut.wish(On::graph), Actions{});
}

TEST_F(AgreementTest, WhatItHasAnsweredCounts) {
  (void)sut.wish(On::end);
  (void)answer(0, On::end, 4);
  (void)answer(2, On::end, 9);
  EXPECT_EQ(sut.on_lost(kWithoutTwo), Actions{});
  EXPECT_EQ(answer(1, On::end, 5, kWithoutTwo), (Actions{Decide{On::end, Version{9}}}));
}

TEST_F(AgreementTest, NothingIsDecidedBeforeAnybodyHasAnswered) {
  (void)sut.wish(On::graph);
  EXPECT_EQ(sut.on_lost({}), Actions{});
}

TEST_F(AgreementTest, AnEndIsAgreedOnAfterTheGraphThatIsUnderWay) {
  (void)sut.wish(On::graph);
  EXPECT_EQ(sut.wish(On::end), Actions{});
  EXPECT_EQ(sut.wish(On::graph), Actions{}) << "an end is the last one";
  (void)answer(0, On::graph, 4);
  EXPECT_EQ(answer(1, On::end, 8), Actions{}) << "that was not asked";
  (void)answer(1, On::graph, 6);
  EXPECT_EQ(answer(2, On::graph, 5), (Actions{Decide{On::graph, Version{6}}, Ask{On::end}}));
  for (const int node : {0, 1}) EXPECT_EQ(answer(node, On::end, 6), Actions{}) << "each is asked anew";
  EXPECT_EQ(answer(2, On::end, 7), (Actions{Decide{On::end, Version{7}}}));
  EXPECT_EQ(sut.wish(On::graph), Actions{});
}

TEST_F(AgreementTest, GraphsFollowEachOther) {
  for (const int v : {6, 3}) {
    (void)sut.wish(On::graph);
    for (const int node : {0, 1}) (void)answer(node, On::graph, v);
    EXPECT_EQ(answer(2, On::graph, v), (Actions{Decide{On::graph, Version{6}}}));
  }
}

/// All orders of two wishes, the answers and the loss of an agent, before or after it has answered. Each agent answers
/// each question once, in order, if it is not lost by then.
class AllOrders {
 public:
  std::size_t walk() {
    step({});
    return walked_;
  }

 private:
  struct State {
    Agreement core;
    std::vector<On> wishes;
    std::vector<On> asked;
    std::array<std::size_t, 3> answered{};  ///< Questions, of each agent.
    bool is_lost = false;
    std::vector<Decide> decided;
    std::map<On, int> highest{{On::end, -1}, {On::graph, -1}};
  };

  static std::set<NodeId> left(const State& state) { return state.is_lost ? kWithoutTwo : kAll; }
  static int begun(std::size_t node, std::size_t question) { return static_cast<int>(10 * question + 3 * node) % 17; }

  static void act(State& state, const Actions& actions) {
    for (const auto& action : actions) {
      if (const auto* ask = std::get_if<Ask>(&action)) {
        state.asked.push_back(ask->what);
      } else {
        state.decided.push_back(std::get<Decide>(action));
      }
    }
  }

  void step(const State& state) {
    ++walked_;
    bool goes_on = false;
    if (state.wishes.size() < 2)
      for (const On what : {On::end, On::graph}) {
        goes_on = true;
        State next = state;
        next.wishes.push_back(what);
        act(next, next.core.wish(what));
        step(next);
      }
    for (std::size_t node = 0; node < 3; ++node) {
      if (state.answered[node] == state.asked.size() || (node == 2 && state.is_lost)) continue;
      goes_on = true;
      State next = state;
      const std::size_t question = next.answered[node]++;
      const On what = next.asked[question];
      const int v = begun(node, question);
      next.highest[what] = std::max(next.highest[what], v);
      act(next, next.core.on_answer(NodeId{static_cast<std::int32_t>(node)}, what, Version{v}, left(next)));
      step(next);
    }
    if (!state.is_lost) {
      State next = state;
      next.is_lost = true;
      act(next, next.core.on_lost(left(next)));
      step(next);
    }
    if (!goes_on) check(state);
  }

  static void check(const State& state) {
    ASSERT_EQ(state.decided.size(), state.asked.size()) << "each question is answered";
    const bool wants_end = std::find(state.wishes.begin(), state.wishes.end(), On::end) != state.wishes.end();
    EXPECT_EQ(!state.decided.empty() && state.decided.back().what == On::end, wants_end) << "an end comes, and last";
    std::map<On, Version> last;
    for (const auto& each : state.decided) last[each.what] = each.last;
    for (const auto& [what, v] : last) EXPECT_GE(v.value, state.highest.at(what)) << "nobody has begun more";
  }

  std::size_t walked_ = 0;
};

TEST(AgreementOrdersTest, AreAllDecidedOnceAndBehindWhatAnybodyHasBegun) { EXPECT_GT(AllOrders().walk(), 1000U); }

}  // namespace
}  // namespace paceline::scheduler
