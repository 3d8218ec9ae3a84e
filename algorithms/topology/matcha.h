#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/topology/graph.h"
#include "runtime/base/result.h"

namespace paceline::algorithms {

/// MATCHA (Wang et al., "MATCHA: Speeding up decentralized SGD via matching decomposition sampling"): a graph taken
/// apart into disjoint matchings, each of which is active in an iteration with its own probability; matching_mixing()
/// makes a plan of it.
struct Matcha {
  std::int32_t nodes = 0;
  std::vector<std::vector<Edge>> matchings;
  std::vector<double> probabilities;  ///< One a matching, in [0, 1].
  double alpha = 0;                   ///< W = I - alpha * (sum of the active matchings' Laplacians).
  double rho = 0;  ///< Spectral norm of E[W'W] - J: how much of the consensus distance is left after an iteration.
};

inline constexpr std::int32_t kMatchaNodesMax = 128;

/// Probabilities that maximise lambda_2(sum_j p_j L_j) under sum_j p_j <= budget * M, and the alpha that minimises rho
/// for them. budget: the share of the M matchings that is active on average, in (0, 1]; 1: all p_j = 1, that is
/// D-PSGD on the whole graph with alpha = 2 / (lambda_2 + lambda_max). The matchings are those of matchings_of()
/// (edge_colouring.h). Deterministic: the same executable finds the same bits. Takes milliseconds for up to 64 nodes,
/// two seconds for a complete graph of 128.
/// `invalid`: a budget out of its range, a graph that is not connected or has more than kMatchaNodesMax nodes.
Result<Matcha> make_matcha(const Graph& graph, double budget);
/// The same with matchings of one's own. `invalid` also if a node is out of range or twice in one matching, or an edge
/// is in two of them.
Result<Matcha> make_matcha(std::vector<std::vector<Edge>> matchings, std::int32_t nodes, double budget);

}  // namespace paceline::algorithms
