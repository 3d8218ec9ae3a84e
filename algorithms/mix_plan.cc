#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

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

/// Of n workers, for these.
class PlanOfMembers final : public scheduler::MixPlan {
 public:
  PlanOfMembers(MixPlanPtr plan, std::vector<Rank> members) : plan_(std::move(plan)), members_(std::move(members)) {
    std::sort(members_.begin(), members_.end());
  }

  std::vector<scheduler::Share> row(Rank to, Version v) const override {
    const auto place = place_of(to);
    if (!place) return {{to, 1}};
    auto shares = plan_->row(*place, v);
    for (auto& share : shares) share.from = member(share.from);
    return shares;
  }
  std::vector<Rank> receivers(Rank from, Version v) const override {
    const auto place = place_of(from);
    if (!place) return {};
    auto ranks = plan_->receivers(*place, v);
    for (Rank& rank : ranks) rank = member(rank);
    return ranks;
  }

 private:
  std::optional<Rank> place_of(Rank rank) const {
    const auto at = std::lower_bound(members_.begin(), members_.end(), rank);
    if (at == members_.end() || *at != rank) return std::nullopt;
    return Rank{static_cast<std::int32_t>(at - members_.begin())};
  }
  Rank member(Rank place) const { return members_[static_cast<std::size_t>(place.value)]; }

  MixPlanPtr plan_;
  std::vector<Rank> members_;
};

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

std::shared_ptr<const scheduler::MixPlan> mix_plan_of(const Strategy& strategy, const std::vector<Rank>& members,
                                                      std::uint64_t seed) {
  auto plan = members.empty() ? Result<MixPlanPtr>(nullptr)
                              : make_mix_plan(strategy, static_cast<std::int32_t>(members.size()), seed);
  if (!plan || !*plan) return nullptr;
  return std::make_shared<PlanOfMembers>(*std::move(plan), members);
}

}  // namespace paceline::algorithms
