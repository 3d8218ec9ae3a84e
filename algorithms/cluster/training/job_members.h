#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/base/ids.h"

namespace paceline::cluster {

/// Who takes part in a job, as one of its nodes knows it. A worker of this node joins when it shares its model. One
/// may leave before it has joined, and come back: its next process joins, and counts as one that has left until then.
/// Sans I/O.
class JobMembers {
 public:
  /// `node_of`: of each rank.
  JobMembers(NodeId self, std::vector<NodeId> node_of) : self_(self), node_of_(std::move(node_of)) {}

  std::size_t size() const { return node_of_.size(); }
  /// Whether it is a worker of this node; of a rank that the job has not: no.
  bool is_local(Rank rank) const;
  std::vector<Rank> on(NodeId node) const;
  std::vector<Rank> local() const { return on(self_); }

  void join(Rank rank, WorkerId worker);
  /// As if it had never joined.
  void withdraw(Rank rank);
  std::optional<Rank> rank_of(WorkerId worker) const;
  std::optional<WorkerId> worker_of(Rank rank) const;
  bool has_joined(Rank rank) const { return worker_of_.contains(rank); }
  /// Of this node, those that have left as well.
  const std::map<Rank, WorkerId>& joined() const { return worker_of_; }

  /// Whether it was there until now.
  bool leave(Rank rank) { return left_.insert(rank).second; }
  void come_back(Rank rank) { left_.erase(rank); }
  bool has_left(Rank rank) const { return left_.contains(rank); }
  const std::set<Rank>& left() const { return left_; }
  /// Nobody has its place, or its process has ended for good: another worker may take it. It counts as one that has
  /// left. Whether it was there until now.
  bool vacate(Rank rank);
  bool is_vacant(Rank rank) const { return vacant_.contains(rank); }
  /// Somebody is on the way there.
  void take_place(Rank rank) { vacant_.erase(rank); }
  bool all_local_have_left() const;

  /// Whether it is another node of the job, and was there until now. Its workers are to leave().
  bool lose(NodeId node);
  /// Those with workers of the job that are not this one, and not lost.
  std::set<NodeId> other_nodes() const;
  /// The lowest with workers that is not lost.
  NodeId leader() const;
  const std::set<NodeId>& lost_nodes() const { return lost_; }

 private:
  NodeId self_;
  std::vector<NodeId> node_of_;
  std::map<WorkerId, Rank> rank_of_;
  std::map<Rank, WorkerId> worker_of_;
  std::set<Rank> left_;
  std::set<Rank> vacant_;
  std::set<NodeId> lost_;
};

}  // namespace paceline::cluster
