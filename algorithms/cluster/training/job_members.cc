#include "algorithms/cluster/training/job_members.h"

#include <algorithm>

namespace paceline::cluster {

bool JobMembers::is_local(Rank rank) const {
  const auto index = static_cast<std::size_t>(rank.value);
  return rank.value >= 0 && index < node_of_.size() && node_of_[index] == self_;
}

std::vector<Rank> JobMembers::on(NodeId node) const {
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < node_of_.size(); ++i)
    if (node_of_[i] == node) ranks.emplace_back(static_cast<std::int32_t>(i));
  return ranks;
}

void JobMembers::join(Rank rank, WorkerId worker) {
  withdraw(rank);
  rank_of_[worker] = rank;
  worker_of_[rank] = worker;
}

void JobMembers::withdraw(Rank rank) {
  const auto joined = worker_of_.find(rank);
  if (joined == worker_of_.end()) return;
  rank_of_.erase(joined->second);
  worker_of_.erase(joined);
}

bool JobMembers::vacate(Rank rank) {
  vacant_.insert(rank);
  return leave(rank);
}

std::optional<Rank> JobMembers::rank_of(WorkerId worker) const {
  const auto found = rank_of_.find(worker);
  return found == rank_of_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<WorkerId> JobMembers::worker_of(Rank rank) const {
  const auto found = worker_of_.find(rank);
  return found == worker_of_.end() ? std::nullopt : std::optional(found->second);
}

bool JobMembers::all_local_have_left() const {
  const auto ranks = local();
  return std::all_of(ranks.begin(), ranks.end(), [this](Rank rank) { return has_left(rank); });
}

bool JobMembers::lose(NodeId node) { return other_nodes().contains(node) && lost_.insert(node).second; }

NodeId JobMembers::leader() const {
  auto nodes = other_nodes();
  nodes.insert(self_);
  return *nodes.begin();
}

std::set<NodeId> JobMembers::other_nodes() const {
  std::set<NodeId> nodes(node_of_.begin(), node_of_.end());
  std::erase_if(nodes, [this](NodeId node) { return node == self_ || lost_.contains(node); });
  return nodes;
}

}  // namespace paceline::cluster
