#pragma once

#include <vector>

#include "tests/sim/explorer/mix_shell.h"

namespace paceline::explorer {

/// A mix shell whose workers' steps are of batches that the first of them ends: the batch engine says when, and what a
/// sum weighs; who did nothing of an update, or does not answer, is stood in for.
class BatchShell final : public MixShell {
 public:
  using MixShell::MixShell;

  MixState start() const override;
  void make(MixState& s, const Move& move) override;

 private:
  void add_steps_of(const MixState& s, int rank, std::vector<Move>& to) const override;
  void let_go(MixState& s, Rank rank, Version own) override;
  void on_death(MixState& s, NodeId id, Rank rank) override;
  void take(MixState& s, NodeId to, const MixEvent& event) override;
  void pass_on(MixState& s, NodeId self, NodeId to) override;

  void do_body(MixState& s, Rank rank);
  void reported(MixState& s, Rank rank);
  void settle(MixState& s, Rank rank, Version v, std::int32_t bodies);
  void mix(MixState& s, Rank rank);
  void act(MixState& s, NodeId id, const BatchEngine::Actions& actions);
  void carry_out(MixState& s, NodeId id, const BatchEngine::Signal& a);
  void carry_out(MixState& s, NodeId id, const BatchEngine::Tell& a);
  void carry_out(MixState& s, NodeId id, const BatchEngine::Step& a);
  void carry_out(MixState& s, NodeId id, const BatchEngine::StandIn& a);
  const BatchEngine& batches(const MixState& s, Rank rank) const { return agent(s, node(rank)).batches->engine; }
};

}  // namespace paceline::explorer
