#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "runtime/base/ids.h"

namespace paceline::scheduler {

/// Who is in a job, as one of its agents goes by it: on which node each worker is, and which nodes the job goes on
/// without (view_change.h decides when). Pure.
class View {
 public:
  /// `node_of`: rank -> node.
  View(NodeId self, std::vector<NodeId> node_of);

  /// Of the rank, which is one of the job's.
  NodeId node_of(Rank rank) const { return node_of_.at(static_cast<std::size_t>(rank.value)); }
  bool has(Rank rank) const { return rank.value >= 0 && static_cast<std::size_t>(rank.value) < node_of_.size(); }
  bool lives_on(Rank rank, NodeId node) const { return has(rank) && node_of(rank) == node; }
  bool is_here(Rank rank) const { return lives_on(rank, self_); }
  /// The node's workers, ascending.
  std::vector<Rank> ranks_on(NodeId node) const;
  /// Nodes with workers of the job that it has not gone on without, but this one.
  std::set<NodeId> others() const;
  /// Those and this one.
  std::set<NodeId> nodes() const;
  /// The lowest of the nodes with workers that the job has not gone on without: it asks and decides where one has to.
  NodeId leader() const;
  bool leads() const { return leader() == self_; }
  /// Whose it is what `from` has sent, which passes it on if `of` is not below 0. nullopt: it does not count here.
  std::optional<NodeId> giver(NodeId from, std::int32_t of) const;

  void go_on_without(NodeId node) { without_.insert(node); }
  bool is_without(NodeId node) const { return without_.contains(node); }

 private:
  NodeId self_;
  std::vector<NodeId> node_of_;
  std::set<NodeId> without_;
};

}  // namespace paceline::scheduler
