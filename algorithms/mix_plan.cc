#include <memory>

#include "algorithms/strategy.h"
#include "algorithms/topology/graph.h"
#include "algorithms/topology/graph_file.h"
#include "algorithms/topology/matcha.h"
#include "algorithms/topology/mixing.h"

// The tiers of neighbourhoods as rows of mixing matrices.

namespace paceline::algorithms {
namespace {

Result<MixPlanPtr> matchings(const Groups& groups, std::int32_t workers, std::uint64_t seed) {
  auto graph = names_graph_file(groups.graph) ? read_graph(groups.graph, workers) : named_graph(groups.graph, workers);
  if (!graph) return tl::unexpected(graph.error());
  auto matcha = make_matcha(*graph, groups.budget);
  if (!matcha) return tl::unexpected(matcha.error());
  return matching_mixing(std::move(*matcha), seed);
}

}  // namespace

Result<MixPlanPtr> make_mix_plan(const Strategy& strategy, std::int32_t workers, std::uint64_t seed) {
  const Tier& tier = strategy.tiers.front();
  const Groups& groups = tier.groups;
  if (tier.fragments > 0) return complete_mixing(workers);
  switch (groups.kind) {
    case Groups::Kind::matched: return matched_mixing(workers, seed);
    case Groups::Kind::ring: return ring_mixing(workers);
    case Groups::Kind::complete: return complete_mixing(workers);
    case Groups::Kind::bipartite: return bipartite_mixing(workers);
    case Groups::Kind::exponential:
      return directed_mixing(workers, groups.peers, groups.fast_hops ? Hops::base_p1 : Hops::pow2);
    case Groups::Kind::digraph: {
      auto graph = read_digraph(groups.graph, workers);
      if (!graph) return tl::unexpected(graph.error());
      return digraph_mixing(*graph);
    }
    case Groups::Kind::matchings: return matchings(groups, workers, seed);
    case Groups::Kind::clusters:
      return cluster_mixing({.workers = workers,
                             .size = groups.size,
                             .local_every = tier.period.steps,
                             .global_every = strategy.tiers.back().period.steps});
    case Groups::Kind::all:
    case Groups::Kind::butterfly:
    case Groups::Kind::strided:
    case Groups::Kind::server:
    case Groups::Kind::pair: break;
  }
  return MixPlanPtr();
}

}  // namespace paceline::algorithms
