#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::algorithms {

/// Two nodes that mix with each other; node i is the worker of rank i. An edge has no direction: {a, b} means {b, a}.
struct Edge {
  std::int32_t a = 0;
  std::int32_t b = 0;

  bool operator==(const Edge&) const = default;
};

/// Undirected: nodes 0..nodes-1, no self loop, no edge twice. The order of the edges decides how they are coloured
/// (edge_colouring.h).
struct Graph {
  std::int32_t nodes = 0;
  std::vector<Edge> edges;
};

/// Directed: to whom each node sends, in ascending order, itself not included. Node i is the worker of rank i.
struct Digraph {
  std::vector<std::vector<std::int32_t>> out;
};

/// The neighbours of every node, each list in ascending order.
std::vector<std::vector<std::int32_t>> neighbours_of(const Graph& graph);

/// Which nodes paths from node 0 lead to, itself included; `out`: where edges lead from each node. At least one node.
std::vector<bool> reached_from_0(const std::vector<std::vector<std::int32_t>>& out);

/// Neighbours i-1 and i+1 mod P; one edge at P = 2, none at P = 1.
Graph ring_graph(std::int32_t workers);
/// Everybody with everybody.
Graph complete_graph(std::int32_t workers);
/// The 8 nodes and 12 edges on which MATCHA and Non-blocking SGD are measured, in the order of the five matchings that
/// are published with it: 15 67 04 23 | 17 36 | 10 37 56 | 12 70 | 31.
Graph eight_node_graph();

/// "ring", "complete" or "8-node". `invalid` names the three, or says that "8-node" needs 8 workers.
Result<Graph> named_graph(std::string_view name, std::int32_t workers);

}  // namespace paceline::algorithms
