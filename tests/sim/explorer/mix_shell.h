#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/sim/explorer/mix_state.h"

namespace paceline::explorer {

/// The shells of a model's agents, its network and its workers; holds each step against the engine's promises.
class MixShell : public ClusterShell<MixState, MixMutation> {
 public:
  MixShell(MixModel model, MixMutation mutation);

  virtual MixState start() const;
  /// Moves that a patient system makes by itself, and what faults add.
  std::vector<Move> steps(const MixState& s) const;
  virtual void make(MixState& s, const Move& move);
  /// Nothing can happen unless one that stopped wakes.
  void check_end(const MixState& s);

 protected:
  virtual void add_steps_of(const MixState& s, int rank, std::vector<Move>& to) const;
  /// It has mixed its `own`.
  virtual void let_go(MixState& s, Rank rank, Version own);
  virtual void on_death(MixState&, NodeId, Rank) {}
  void take(MixState& s, NodeId to, const MixEvent& event) override;
  void pass_on(MixState& s, NodeId self, NodeId to) override;
  void go_on_without(MixState& s, NodeId self) override;

  void contribute(MixState& s, Rank rank);
  void want(MixState& s, Rank rank);
  MixModel model_;

 private:
  void work(MixState& s, NodeId id) override;
  void end_last(MixState& s) override;
  void act(MixState& s, NodeId id, const MixEngine::Actions& actions);
  void send(MixState& s, NodeId from, NodeId to, const MixEvent& event);
  void release(MixState& s, NodeId id, const Contribution& c);
  void complain(MixState& s, Rank rank);
  void on_awaited(MixState& s, Rank rank, Version v);
  /// Others wait for it at v, and it neither waits nor gives signs of life.
  static bool is_silent(const MixState& s, Rank rank, Version v);
  void die(MixState& s, Rank rank) override;
  bool may_lack(const MixState& s, NodeId self, NodeId node, Version v) const;
  void forget_used(MixState& s, NodeId self) const;

  void check_mix(const MixState& s, const MixAgent& agent, const MixEngine::Mix& a);
  void check_row(const MixState& s, const MixAgent& agent, const MixEngine::Mix& a);
  void check_release(const MixState& s, NodeId id, const Contribution& c);
  void note_taken(MixState& s, const MixEngine::Mix& a);
  void check_columns(MixState& s);
  void check_column(const MixState& s, Version v);

  std::shared_ptr<const MixPlan> plan(NodeId self) const;
  double weight(Rank to, Rank from, Version v) const;

  std::shared_ptr<const MixPlan> plan_;
};

}  // namespace paceline::explorer
