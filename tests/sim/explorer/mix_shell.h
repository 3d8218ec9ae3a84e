#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "tests/sim/explorer/mix_state.h"

namespace paceline::explorer {

struct MixMove {
  enum class Kind : std::uint8_t { contribute, want, die, deliver, work };
  Kind kind;
  int who;
  int to = 0;
};

/// The shells of a model's agents, its network and its workers; holds each step against the engine's promises.
class MixShell {
 public:
  MixShell(MixModel model, MixMutation mutation);

  MixState start() const;
  std::vector<MixMove> moves(const MixState& s) const;
  void make(MixState& s, const MixMove& move);
  /// Nothing can happen any more.
  void check_end(const MixState& s);

  const std::string& violation() const { return violation_; }

 private:
  /// Tells the agent's engine.
  MixEngine::Actions tell(MixAgent& agent, NodeId self, const MixEvent& event) const;
  void act(MixState& s, NodeId id, const MixEngine::Actions& actions);
  void send(MixState& s, NodeId from, NodeId to, const MixEvent& event);
  void hear(MixState& s, NodeId id, const MixEvent& event);
  void die(MixState& s, int who);
  void mix(MixState& s, NodeId id);
  void check_mix(const MixState& s, const MixAgent& agent, const MixEngine::Mix& a);
  void check_row(const MixState& s, const MixAgent& agent, const MixEngine::Mix& a);
  void check_release(const MixState& s, NodeId id, const Contribution& c);
  void check_columns(MixState& s, Version v);
  std::unique_ptr<MixPlan> plan(NodeId self) const;
  double weight(Rank to, Rank from, Version v) const;
  NodeId node(Rank rank) const { return model_.node_of[static_cast<std::size_t>(rank.value)]; }
  int workers() const { return static_cast<int>(model_.node_of.size()); }
  bool spoils(MixState& s, MixMutation mutation) const;
  void expect(bool holds, const std::string& what) {
    if (!holds && violation_.empty()) violation_ = what;
  }

  MixModel model_;
  MixMutation mutation_;
  std::unique_ptr<MixPlan> plan_;
  std::string violation_;
};

}  // namespace paceline::explorer
