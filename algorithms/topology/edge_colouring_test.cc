#include "algorithms/topology/edge_colouring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/base/splitmix.h"

namespace paceline::algorithms {
namespace {

using Matchings = std::vector<std::vector<Edge>>;

std::size_t largest_degree(const Graph& graph) {
  std::size_t delta = 0;
  for (const auto& list : neighbours_of(graph)) delta = std::max(delta, list.size());
  return delta;
}

/// Checks that they are matchings that make up the graph; returns how many.
std::size_t count_of(const Graph& graph) {
  std::multiset<std::pair<std::int32_t, std::int32_t>> expected, found;
  for (const Edge& edge : graph.edges) expected.emplace(edge.a, edge.b);
  const auto matchings = matchings_of(graph);
  for (const auto& matching : matchings) {
    EXPECT_FALSE(matching.empty());
    std::set<std::int32_t> seen;
    for (const Edge& edge : matching) {
      EXPECT_TRUE(seen.insert(edge.a).second && seen.insert(edge.b).second) << edge.a << " " << edge.b;
      found.emplace(edge.a, edge.b);
    }
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(matchings, matchings_of(graph));
  return matchings.size();
}

/// Each edge is there with the same probability.
Graph random_graph(std::int32_t nodes, double density, std::uint64_t seed) {
  Graph graph{.nodes = nodes, .edges = {}};
  for (const Edge& edge : complete_graph(nodes).edges)
    if (draw_uniform(seed, edge.a, edge.b) < density) graph.edges.push_back(edge);
  return graph;
}

TEST(EdgeColouringTest, TheEightNodesFallIntoThePublishedMatchings) {
  EXPECT_EQ(
      matchings_of(eight_node_graph()),
      (Matchings{
          {{1, 5}, {6, 7}, {0, 4}, {2, 3}}, {{1, 7}, {3, 6}}, {{1, 0}, {3, 7}, {5, 6}}, {{1, 2}, {7, 0}}, {{3, 1}}}));
}

TEST(EdgeColouringTest, TheFirstEdgesComeFirst) {
  EXPECT_EQ(matchings_of(ring_graph(4)), (Matchings{{{0, 1}, {2, 3}}, {{1, 2}, {3, 0}}}));
}

TEST(EdgeColouringTest, RingsAndCompleteGraphsTakeAsFewAsTheyCan) {
  EXPECT_EQ(count_of(ring_graph(1)), 0u);
  EXPECT_EQ(count_of(ring_graph(2)), 1u);
  for (std::int32_t nodes = 3; nodes <= 33; ++nodes) {
    EXPECT_EQ(count_of(ring_graph(nodes)), nodes % 2 == 0 ? 2u : 3u);
    EXPECT_EQ(count_of(complete_graph(nodes)), static_cast<std::size_t>(nodes % 2 == 0 ? nodes - 1 : nodes)) << nodes;
  }
}

TEST(EdgeColouringTest, BipartiteGraphsTakeDelta) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Graph graph = random_graph(24, 0.5, seed);
    std::erase_if(graph.edges, [](const Edge& edge) { return (edge.a + edge.b) % 2 == 0; });
    EXPECT_EQ(count_of(graph), largest_degree(graph)) << seed;
  }
}

TEST(EdgeColouringTest, PetersensGraphNeedsOneMore) {
  const Graph petersen{.nodes = 10,
                       .edges = {{0, 1},
                                 {1, 2},
                                 {2, 3},
                                 {3, 4},
                                 {4, 0},
                                 {5, 7},
                                 {7, 9},
                                 {9, 6},
                                 {6, 8},
                                 {8, 5},
                                 {0, 5},
                                 {1, 6},
                                 {2, 7},
                                 {3, 8},
                                 {4, 9}}};
  EXPECT_EQ(count_of(petersen), 4u);
}

TEST(EdgeColouringTest, NoGraphTakesMoreThanDeltaAndOne) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto graph =
        random_graph(5 + static_cast<std::int32_t>(seed % 20), 0.1 + 0.008 * static_cast<double>(seed), seed);
    const auto count = count_of(graph);
    EXPECT_GE(count, largest_degree(graph));
    EXPECT_LE(count, largest_degree(graph) + 1);
  }
}

TEST(EdgeColouringTest, BigGraphsAreColouredInOneGo) {
  for (const double density : {0.9, 1.0}) {
    const auto graph = random_graph(97, density, 3);
    ASSERT_GT(graph.edges.size(), 4096u);
    EXPECT_LE(count_of(graph), largest_degree(graph) + 1) << density;
  }
}

}  // namespace
}  // namespace paceline::algorithms
