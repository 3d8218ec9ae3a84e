#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "runtime/base/piece.h"
#include "scheduler/contents.h"
#include "scheduler/mixing/mix_engine.h"
#include "scheduler/views/view.h"

namespace paceline::scheduler {

/// What a worker contributed to a version; shared with the averagings that read it.
struct Contribution {
  Piece data;
  double weight = 1;
  Contents contents{};
};

/// Contributions of all workers, as long as somebody here takes from them. Where all workers mix the same, all agents
/// must have the same of one that is lost: those of others are kept while an agent may lack them, and passed on to it
/// (views/view_change.h). Pure.
class Contributions {
 public:
  using Send = std::function<void(Rank, Version, const Contribution&)>;

  /// `alike`: all workers mix the same. Else each worker's mixture is its own.
  Contributions(NodeId self, const View& view, const MixEngine& engine, bool alike)
      : self_(self), view_(view), engine_(engine), alike_(alike) {}

  void hold(Rank rank, Version v, Contribution contribution) { held_[{rank, v}] = std::move(contribution); }
  const Contribution& at(Rank rank, Version v) const { return held_.at({rank, v}); }
  /// Nobody here takes from it any more.
  void release(Rank rank, Version v);
  /// The worker, of another agent, contributes to v.
  void on_given(Rank rank, Version v);
  /// Somebody contributes no more.
  void on_gone() { forget_used(); }
  /// Those of the lost agent's workers that `to` may lack.
  void pass_on(NodeId lost, NodeId to, const Send& send) const;

 private:
  bool may_lack(NodeId node, Version v) const;
  void forget_used();

  NodeId self_;
  const View& view_;
  const MixEngine& engine_;
  bool alike_;
  std::map<std::pair<Rank, Version>, Contribution> held_;
  std::map<std::pair<Rank, Version>, Contribution> used_;  ///< Other agents', mixed here, that others may lack.
  std::map<NodeId, Version> given_;                        ///< What a worker of the agent has last contributed to.
};

}  // namespace paceline::scheduler
