#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/piece.h"
#include "scheduler/contents.h"
#include "scheduler/rounds/round_plan.h"

namespace paceline::scheduler {

/// What a partial sum of a group's contributions is of.
struct Summed {
  std::int32_t contributions = 0;
  std::int64_t bodies = 0;
  RoundSums sums;
  Contents contents;
};
/// Another agent's.
struct RemotePartial : Summed {
  Piece sum;
};

/// Other agents' partial sums that are used here, kept while an agent of their group may lack one: if the agent whose
/// it is is lost, it is passed on to those (views/view_change.h). Pure.
class UsedPartials {
 public:
  using Key = std::pair<std::int64_t, std::int32_t>;  ///< Version, group.

  /// The group's version is executed here; `others` are the agents that gave to it.
  void keep(Key key, const std::vector<NodeId>& others, std::map<NodeId, RemotePartial> partials);
  /// The agent has given to v: it has executed everything before.
  void on_given(NodeId node, Version v);
  /// It will execute nothing any more.
  void on_lost(NodeId node);
  /// Those of `lost` that `to` may lack.
  void pass_on(NodeId lost, NodeId to, const std::function<void(Key, const RemotePartial&)>& send) const;
  bool empty() const { return used_.empty(); }

 private:
  struct Used {
    std::set<NodeId> not_executed;  ///< Of the group's other agents.
    std::map<NodeId, RemotePartial> partials;
  };
  bool has_executed(NodeId node, std::int64_t version) const;
  void forget();

  std::map<Key, Used> used_;
  std::map<NodeId, Version> given_;  ///< The last version that each has given to.
  std::set<NodeId> lost_;
};

}  // namespace paceline::scheduler
