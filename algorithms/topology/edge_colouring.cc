#include "algorithms/topology/edge_colouring.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "runtime/base/check.h"
#include "runtime/base/splitmix.h"

namespace paceline::algorithms {
namespace {

constexpr std::size_t kEdgesTriedMax = 4096;
constexpr int kOrdersTried = 64;

using Node = std::int32_t;
using Colour = std::size_t;

/// Edges that have a colour so far; no two of the same colour meet.
class Colouring {
 public:
  Colouring(const Graph& graph, std::size_t colours)
      : graph_(graph),
        colours_(colours),
        colour_of_(graph.edges.size()),
        edge_at_(static_cast<std::size_t>(graph.nodes), std::vector<std::optional<std::size_t>>(colours)) {}

  /// Colours an edge by swapping at most one path; false: that does not do.
  bool add_by_path(std::size_t edge) {
    const auto [u, v] = graph_.edges[edge];
    for (Colour a = 0; a < colours_; ++a) {
      if (!is_free(u, a) || !is_free(v, a)) continue;
      paint(edge, a);
      return true;
    }
    for (Colour a = 0; a < colours_; ++a) {
      if (!is_free(u, a)) continue;
      for (Colour b = 0; b < colours_; ++b) {
        if (!is_free(v, b)) continue;
        const auto path = path_from(v, a, b);
        if (is_end(path, u)) continue;
        swap_colours(path, a, b);
        paint(edge, a);
        return true;
      }
    }
    return false;
  }

  /// Misra and Gries: always possible with Delta + 1 colours. A fan of u is a list of edges at u, the first without
  /// colour, each next one of a colour that is free at the far end of the one before: its colours can be rotated.
  void add_by_fan(std::size_t edge, const std::vector<std::vector<std::size_t>>& edges_at) {
    const Node u = graph_.edges[edge].a;
    std::vector<std::size_t> fan{edge};
    for (bool grown = true; grown;) {
      grown = false;
      for (const std::size_t next : edges_at[static_cast<std::size_t>(u)]) {
        if (!colour_of_[next] || std::find(fan.begin(), fan.end(), next) != fan.end()) continue;
        if (!is_free(far_end(fan.back(), u), *colour_of_[next])) continue;
        fan.push_back(next);
        grown = true;
      }
    }
    const Colour c = free_colour(u), d = free_colour(far_end(fan.back(), u));
    swap_colours(path_from(u, d, c), d, c);
    std::size_t last = 0;  // The first edge of what is still a fan that can take d.
    while (!is_free(far_end(fan[last], u), d)) {
      ++last;
      PACELINE_CHECK(last < fan.size() && is_free(far_end(fan[last - 1], u), *colour_of_[fan[last]]),
                     "some edge of the fan can take the colour");
    }
    for (std::size_t k = 0; k < last; ++k) {
      const Colour colour = *colour_of_[fan[k + 1]];
      erase(fan[k + 1]);
      paint(fan[k], colour);
    }
    paint(fan[last], d);
  }

  std::vector<std::vector<Edge>> matchings() const {
    std::vector<std::vector<Edge>> matchings(colours_);
    for (std::size_t edge = 0; edge < colour_of_.size(); ++edge)
      matchings[*colour_of_[edge]].push_back(graph_.edges[edge]);
    std::erase_if(matchings, [](const auto& matching) { return matching.empty(); });
    return matchings;
  }

 private:
  std::optional<std::size_t>& slot(Node node, Colour c) { return edge_at_[static_cast<std::size_t>(node)][c]; }
  bool is_free(Node node, Colour c) { return !slot(node, c); }
  Colour free_colour(Node node) {
    Colour c = 0;
    while (!is_free(node, c)) ++c;
    return c;
  }
  Node far_end(std::size_t edge, Node node) const {
    const auto [a, b] = graph_.edges[edge];
    return a == node ? b : a;
  }
  void paint(std::size_t edge, Colour c) {
    colour_of_[edge] = c;
    slot(graph_.edges[edge].a, c) = slot(graph_.edges[edge].b, c) = edge;
  }
  void erase(std::size_t edge) {
    slot(graph_.edges[edge].a, *colour_of_[edge]).reset();
    slot(graph_.edges[edge].b, *colour_of_[edge]).reset();
    colour_of_[edge].reset();
  }

  /// The edges of colours a, b, a, .. from a node at which b is free, to the end of that path.
  std::vector<std::size_t> path_from(Node node, Colour a, Colour b) {
    std::vector<std::size_t> path;
    for (auto edge = slot(node, a); edge; edge = slot(node, path.size() % 2 == 0 ? a : b)) {
      path.push_back(*edge);
      node = far_end(*edge, node);
    }
    return path;
  }
  /// Whether a path of colours a, b, .. ends at this node, at which a is free.
  bool is_end(const std::vector<std::size_t>& path, Node node) const {
    return !path.empty() && (graph_.edges[path.back()].a == node || graph_.edges[path.back()].b == node);
  }
  void swap_colours(const std::vector<std::size_t>& path, Colour a, Colour b) {
    for (const std::size_t edge : path) erase(edge);
    for (std::size_t k = 0; k < path.size(); ++k) paint(path[k], k % 2 == 0 ? b : a);
  }

  const Graph& graph_;
  std::size_t colours_;
  std::vector<std::optional<Colour>> colour_of_;                  // By edge.
  std::vector<std::vector<std::optional<std::size_t>>> edge_at_;  // By node and colour.
};

/// The numbers of all edges: in their order, then in orders drawn from `attempt`.
std::vector<std::size_t> order_of(std::size_t edges, int attempt) {
  std::vector<std::size_t> order(edges);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t edge) { return draw_bits(0, attempt, static_cast<std::int64_t>(edge)); };
  if (attempt > 0) std::sort(order.begin(), order.end(), [&](auto a, auto b) { return key(a) < key(b); });
  return order;
}

}  // namespace

std::vector<std::vector<Edge>> matchings_of(const Graph& graph) {
  std::vector<std::vector<std::size_t>> edges_at(static_cast<std::size_t>(graph.nodes));
  for (std::size_t edge = 0; edge < graph.edges.size(); ++edge) {
    edges_at[static_cast<std::size_t>(graph.edges[edge].a)].push_back(edge);
    edges_at[static_cast<std::size_t>(graph.edges[edge].b)].push_back(edge);
  }
  std::size_t delta = 0;
  for (const auto& list : edges_at) delta = std::max(delta, list.size());

  // A matching has at most nodes / 2 edges: where that is too few for all, Delta colours cannot do.
  const bool possible = graph.edges.size() <= delta * static_cast<std::size_t>(graph.nodes / 2);
  for (int attempt = 0; possible && graph.edges.size() <= kEdgesTriedMax && attempt < kOrdersTried; ++attempt) {
    Colouring colouring(graph, delta);
    const auto order = order_of(graph.edges.size(), attempt);
    if (std::all_of(order.begin(), order.end(), [&](auto edge) { return colouring.add_by_path(edge); }))
      return colouring.matchings();
  }
  Colouring colouring(graph, delta + 1);
  for (std::size_t edge = 0; edge < graph.edges.size(); ++edge) colouring.add_by_fan(edge, edges_at);
  return colouring.matchings();
}

}  // namespace paceline::algorithms
