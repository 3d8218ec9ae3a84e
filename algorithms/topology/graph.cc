#include "algorithms/topology/graph.h"

#include <algorithm>
#include <string>

#include "runtime/base/check.h"

namespace paceline::algorithms {

std::vector<std::vector<std::int32_t>> neighbours_of(const Graph& graph) {
  std::vector<std::vector<std::int32_t>> neighbours(static_cast<std::size_t>(graph.nodes));
  for (const Edge& edge : graph.edges) {
    neighbours[static_cast<std::size_t>(edge.a)].push_back(edge.b);
    neighbours[static_cast<std::size_t>(edge.b)].push_back(edge.a);
  }
  for (auto& list : neighbours) std::sort(list.begin(), list.end());
  return neighbours;
}

std::vector<bool> reached_from_0(const std::vector<std::vector<std::int32_t>>& out) {
  std::vector<bool> reached(out.size());
  std::vector<std::int32_t> open{0};
  reached[0] = true;
  while (!open.empty()) {
    const auto node = static_cast<std::size_t>(open.back());
    open.pop_back();
    for (const std::int32_t next : out[node]) {
      if (reached[static_cast<std::size_t>(next)]) continue;
      reached[static_cast<std::size_t>(next)] = true;
      open.push_back(next);
    }
  }
  return reached;
}

Graph ring_graph(std::int32_t workers) {
  PACELINE_CHECK(workers >= 1, "a graph has at least one node");
  Graph graph{.nodes = workers, .edges = {}};
  for (std::int32_t i = 0; i + 1 < workers; ++i) graph.edges.push_back({i, i + 1});
  if (workers > 2) graph.edges.push_back({workers - 1, 0});
  return graph;
}

Graph complete_graph(std::int32_t workers) {
  PACELINE_CHECK(workers >= 1, "a graph has at least one node");
  Graph graph{.nodes = workers, .edges = {}};
  for (std::int32_t a = 0; a < workers; ++a)
    for (std::int32_t b = a + 1; b < workers; ++b) graph.edges.push_back({a, b});
  return graph;
}

Graph eight_node_graph() {
  return {.nodes = 8,
          .edges = {{1, 5}, {6, 7}, {0, 4}, {2, 3}, {1, 7}, {3, 6}, {1, 0}, {3, 7}, {5, 6}, {1, 2}, {7, 0}, {3, 1}}};
}

Result<Graph> named_graph(std::string_view name, std::int32_t workers) {
  if (name == "ring") return ring_graph(workers);
  if (name == "complete") return complete_graph(workers);
  if (name != "8-node")
    return fail(ErrorKind::invalid, "there is no graph '" + std::string(name) + "': use ring, complete or 8-node");
  if (workers != 8)
    return fail(ErrorKind::invalid, "the graph 8-node has 8 nodes and the job " + std::to_string(workers) +
                                        " workers: use 8 workers, or another graph");
  return eight_node_graph();
}

}  // namespace paceline::algorithms
