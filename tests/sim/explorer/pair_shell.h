#pragma once

#include <string>
#include <vector>

#include "tests/sim/explorer/pair_state.h"

namespace paceline::explorer {

/// The shells of a model's agents, their network and the workers; holds each step against the engine's promises.
class PairShell final : public ClusterShell<PairState, PairMutation> {
 public:
  using Meeting = PairEngine::Meeting;
  using Phase = PairEngine::Phase;

  PairShell(PairModel model, PairMutation mutation);

  PairState start() const;
  std::vector<Move> steps(const PairState& s) const;
  void make(PairState& s, const Move& move);
  /// Nothing can happen unless one that stopped wakes.
  void check_end(const PairState& s);

 private:
  void take(PairState& s, NodeId to, const PairMessage& message) override;
  void work(PairState& s, NodeId id) override;
  void end_last(PairState& s) override;
  void pass_on(PairState&, NodeId, NodeId) override {}
  void go_on_without(PairState& s, NodeId self) override;

  void act(PairState& s, NodeId id, const PairEngine::Actions& actions);
  void carry_out(PairState& s, NodeId id, const PairEngine::Send& a);
  void carry_out(PairState& s, NodeId id, const PairEngine::Average& a);
  void carry_out(PairState& s, NodeId id, const PairEngine::Step& a);
  void average(PairState& s, NodeId id, const PairAgent::Work& work);
  void step(PairState& s, NodeId id, Rank rank);
  void take_mean(PairState& s, const PairMessage& message);
  void change(PairState& s, Rank rank, const PairValue& value);
  void die(PairState& s, Rank rank) override;
  void look_at_end(PairState& s, NodeId id);
  bool is_awaited(const PairState& s, int rank) const;

  PairModel model_;
};

}  // namespace paceline::explorer
