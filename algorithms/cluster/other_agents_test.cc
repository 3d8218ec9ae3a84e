#include "algorithms/cluster/other_agents.h"

#include <gtest/gtest.h>

#include <string>

namespace paceline::cluster {
namespace {

std::string words(const OtherAgents::Actions& actions) {
  std::string text;
  const auto say = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
  for (const auto& action : actions) {
    if (const auto* connect = std::get_if<OtherAgents::Connect>(&action))
      say("connect " + to_string(connect->node) + " at " + connect->address);
    if (const auto* linked = std::get_if<OtherAgents::TellLinked>(&action))
      say("linked " + std::to_string(linked->epoch));
    if (const auto* reachable = std::get_if<OtherAgents::Reachable>(&action))
      say("reachable " + to_string(reachable->node) + " with " + std::to_string(static_cast<int>(reachable->has.cpus)));
  }
  return text;
}

/// Node 1 of three.
class OtherAgentsTest : public ::testing::Test {
 protected:
  static std::vector<OtherAgents::Known> three(const std::string& of_zero = "a0") {
    return {{NodeId{0}, of_zero, {4, 1}}, {NodeId{1}, "a1", {2, 1}}, {NodeId{2}, "a2", {8, 1}}};
  }
  OtherAgents sut{NodeId{1}};
};

TEST_F(OtherAgentsTest, OneConnectsToThoseOfALowerNumberAndSaysWhenAllKnowIt) {
  EXPECT_EQ(words(sut.on_nodes(3, three())), "connect 0 at a0");
  EXPECT_EQ(words(sut.on_nodes(4, three())), "") << "once";
  EXPECT_EQ(words(sut.on_welcome(NodeId{0})), "linked 4, reachable 0 with 4");
  EXPECT_EQ(words(sut.on_nodes(5, three())), "reachable 0 with 4, linked 5");
  EXPECT_EQ(words(sut.on_hello(NodeId{2})), "reachable 2 with 8");
  EXPECT_EQ(sut.reachable(), (std::set{NodeId{0}, NodeId{2}}));
  EXPECT_EQ(sut.known(), (std::vector{NodeId{0}, NodeId{1}, NodeId{2}}));
}

TEST_F(OtherAgentsTest, ThereAreAsManyNumbersAsItHasEverHeardOf) {
  EXPECT_EQ(sut.numbers(), 2);
  (void)sut.on_nodes(1, three());
  (void)sut.on_nodes(2, {{NodeId{1}, "a1", {2, 1}}});
  EXPECT_EQ(sut.numbers(), 3);
}

TEST_F(OtherAgentsTest, OneThatTheHeadHasNotToldOfYetIsReachableThen) {
  EXPECT_EQ(words(sut.on_hello(NodeId{2})), "");
  EXPECT_EQ(words(sut.on_nodes(1, three())), "connect 0 at a0, reachable 2 with 8");
  EXPECT_EQ(words(sut.on_hello(NodeId{-1})), "");
}

TEST_F(OtherAgentsTest, OneThatIsLostIsConnectedToAgainAndToldNothingUntilItSpeaks) {
  (void)sut.on_nodes(1, three());
  (void)sut.on_welcome(NodeId{0});
  EXPECT_EQ(words(sut.on_gone(NodeId{0}, "frozen")), "connect 0 at a0");
  EXPECT_EQ(sut.cut_off(NodeId{0}), "frozen");
  EXPECT_TRUE(sut.reachable().empty());
  EXPECT_EQ(words(sut.on_nodes(2, three())), "") << "not linked";
  sut.heard(NodeId{0});
  EXPECT_EQ(sut.cut_off(NodeId{0}), std::nullopt);
  EXPECT_EQ(words(sut.on_welcome(NodeId{0})), "linked 2, reachable 0 with 4");
}

TEST_F(OtherAgentsTest, OneThatConnectsItselfIsWaitedFor) {
  (void)sut.on_nodes(1, three());
  (void)sut.on_hello(NodeId{2});
  EXPECT_EQ(words(sut.on_gone(NodeId{2}, "frozen")), "");
  EXPECT_EQ(sut.cut_off(NodeId{2}), std::nullopt);
}

TEST_F(OtherAgentsTest, OneThatWasStartedAnewHasAnotherAddress) {
  (void)sut.on_nodes(1, three());
  (void)sut.on_welcome(NodeId{0});
  (void)sut.on_gone(NodeId{0}, "killed");
  EXPECT_EQ(words(sut.on_nodes(2, three("b0"))), "connect 0 at b0");
  EXPECT_EQ(sut.cut_off(NodeId{0}), std::nullopt);
}

TEST_F(OtherAgentsTest, WithoutAHeadNobodyIsToldThatItIsLinked) {
  (void)sut.on_nodes(1, three());
  sut.on_head_gone();
  EXPECT_EQ(words(sut.on_welcome(NodeId{0})), "reachable 0 with 4");
  EXPECT_EQ(words(sut.on_nodes(7, three())), "reachable 0 with 4, linked 7");
}

}  // namespace
}  // namespace paceline::cluster
