#pragma once

#include <vector>

#include "algorithms/topology/graph.h"

namespace paceline::algorithms {

/// Takes a graph apart into matchings: no node is twice in one, every edge is in exactly one. With Delta the largest
/// degree there are Delta of them wherever that is found, and never more than Delta + 1 (which Vizing's theorem
/// promises, and some graphs need). Deterministic, the same on every machine.
///
/// Up to 4096 edges are first coloured with Delta colours, in their order, each edge with the lowest that is free at
/// both ends; where there is none, a path of two colours is swapped to make one (Kempe). If that fails, other orders
/// are tried; then Misra and Gries' method ("A constructive proof of Vizing's theorem") does it with Delta + 1. So
/// whoever wants certain matchings writes the edges of the first one first.
std::vector<std::vector<Edge>> matchings_of(const Graph& graph);

}  // namespace paceline::algorithms
