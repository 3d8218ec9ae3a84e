#include "scheduler/views/view.h"

#include <gtest/gtest.h>

namespace paceline::scheduler {
namespace {

using Nodes = std::set<NodeId>;

class ViewTest : public ::testing::Test {
 protected:
  // Two workers on node 0, one on node 1, two on node 3; node 2 has none.
  View view_{NodeId{1}, {NodeId{0}, NodeId{0}, NodeId{1}, NodeId{3}, NodeId{3}}};
};

TEST_F(ViewTest, KnowsWhereWorkersAre) {
  EXPECT_EQ(view_.ranks_on(NodeId{3}), (std::vector{Rank{3}, Rank{4}}));
  EXPECT_TRUE(view_.ranks_on(NodeId{2}).empty());
  EXPECT_EQ(view_.node_of(Rank{1}), NodeId{0});
  EXPECT_TRUE(view_.is_here(Rank{2}));
  EXPECT_FALSE(view_.is_here(Rank{1}));
}

TEST_F(ViewTest, RanksThatAreNoneLiveNowhere) {
  for (const int rank : {-1, 5, 1 << 30}) EXPECT_FALSE(view_.lives_on(Rank{rank}, NodeId{0})) << rank;
}

TEST_F(ViewTest, GoesOnWithoutNodesThatAreLost) {
  EXPECT_EQ(view_.others(), (Nodes{NodeId{0}, NodeId{3}}));
  view_.go_on_without(NodeId{3});
  EXPECT_TRUE(view_.is_without(NodeId{3}));
  EXPECT_EQ(view_.others(), Nodes{NodeId{0}});
  EXPECT_EQ(view_.nodes(), (Nodes{NodeId{0}, NodeId{1}}));
}

TEST_F(ViewTest, TheLowestThatIsLeftLeads) {
  EXPECT_EQ(view_.leader(), NodeId{0});
  EXPECT_FALSE(view_.leads());
  view_.go_on_without(NodeId{0});
  EXPECT_TRUE(view_.leads());
  const View elsewhere(NodeId{0}, {NodeId{3}, NodeId{2}});
  EXPECT_EQ(elsewhere.leader(), NodeId{2}) << "whose node has no workers does not";
}

TEST_F(ViewTest, WhatIsPassedOnIsItsGiversAndNotTheSenders) {
  EXPECT_EQ(view_.giver(NodeId{0}, -1), NodeId{0});
  EXPECT_EQ(view_.giver(NodeId{0}, 3), NodeId{3});
}

TEST_F(ViewTest, WhatIsOfNobodyWhoCanGiveDoesNotCount) {
  EXPECT_EQ(view_.giver(NodeId{0}, 1), std::nullopt) << "of this node";
  EXPECT_EQ(view_.giver(NodeId{0}, 2), std::nullopt) << "of a node without workers";
  EXPECT_EQ(view_.giver(NodeId{0}, 77), std::nullopt) << "of no node at all";
  view_.go_on_without(NodeId{3});
  EXPECT_EQ(view_.giver(NodeId{0}, 3), std::nullopt) << "of one that the job has gone on without";
}

}  // namespace
}  // namespace paceline::scheduler
