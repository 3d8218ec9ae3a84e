#include "algorithms/topology/graph.h"

#include <gtest/gtest.h>

namespace paceline::algorithms {
namespace {

using Lists = std::vector<std::vector<std::int32_t>>;

TEST(GraphTest, RingsHaveNoEdgeTwice) {
  EXPECT_TRUE(ring_graph(1).edges.empty());
  EXPECT_EQ(ring_graph(2).edges, (std::vector<Edge>{{0, 1}}));
  EXPECT_EQ(ring_graph(4).edges, (std::vector<Edge>{{0, 1}, {1, 2}, {2, 3}, {3, 0}}));
  EXPECT_EQ(neighbours_of(ring_graph(4)), (Lists{{1, 3}, {0, 2}, {1, 3}, {0, 2}}));
}

TEST(GraphTest, InACompleteGraphEverybodyIsEverybodysNeighbour) {
  EXPECT_EQ(complete_graph(6).edges.size(), 15u);
  EXPECT_EQ(neighbours_of(complete_graph(3)), (Lists{{1, 2}, {0, 2}, {0, 1}}));
}

TEST(GraphTest, TheEightNodesHaveThePublishedNeighbours) {
  EXPECT_EQ(neighbours_of(eight_node_graph()),
            (Lists{{1, 4, 7}, {0, 2, 3, 5, 7}, {1, 3}, {1, 2, 6, 7}, {0}, {1, 6}, {3, 5, 7}, {0, 1, 3, 6}}));
}

TEST(NamedGraphTest, KnowsThreeNames) {
  EXPECT_EQ(named_graph("ring", 5)->edges, ring_graph(5).edges);
  EXPECT_EQ(named_graph("complete", 5)->edges, complete_graph(5).edges);
  EXPECT_EQ(named_graph("8-node", 8)->edges, eight_node_graph().edges);
  EXPECT_EQ(named_graph("star", 5).error().text, "there is no graph 'star': use ring, complete or 8-node");
  EXPECT_EQ(named_graph("8-node", 4).error().text,
            "the graph 8-node has 8 nodes and the job 4 workers: use 8 workers, or another graph");
}

}  // namespace
}  // namespace paceline::algorithms
