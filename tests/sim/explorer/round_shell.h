#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/explorer/mutation.h"
#include "tests/sim/explorer/round_cores.h"
#include "tests/sim/explorer/round_state.h"

namespace paceline::explorer {

/// The shells of a model's agents, its network and its workers: says what can happen next, makes it happen, and holds
/// every step against the promises of the core. A mutation makes it do one thing wrong, the first time that it can, or
/// always where once would be mended by what follows.
class RoundShell {
 public:
  RoundShell(Model model, Mutation mutation);

  State start();
  /// Moves that a patient system makes by itself; then, apart, what faults and deadlines add.
  std::vector<Move> steps(const State& s) const;
  std::vector<Move> thaws(const State& s) const;
  std::vector<Move> ticks(const State& s) const;
  std::vector<Move> faults(const State& s) const;
  void make(State& s, const Move& move);
  /// Takes out messages that change nothing now: they never will, since what engines know only grows.
  void drop_idle_messages(State& s);

  void check(const State& s);
  /// Nothing happens unless a paused worker wakes or a deadline passes.
  void check_quiet(const State& s);
  /// Nothing happens unless a paused worker wakes.
  void check_end(const State& s);

  /// The first promise that was broken; empty: none.
  const std::string& violation() const { return violation_; }

 private:
  void publish(Worker& w, bool whole);
  void begin(Worker& w, Version t) const;
  void act(State& s, NodeId id, const RoundEngine::Actions& actions);
  void send(State& s, Message message);
  void carry_out(State& s, NodeId id, const RoundEngine::Seal& a);
  void carry_out(State& s, NodeId id, const RoundEngine::SendPartial& a);
  void carry_out(State& s, NodeId id, const RoundEngine::Execute& a);
  void carry_out(State& s, NodeId id, const RoundEngine::Merge& a);
  void carry_out(State& s, NodeId id, const RoundEngine::Verdict& a);
  void carry_out_next(State& s, NodeId id);
  NodeId lost_agent() const { return NodeId{model_.loses_first ? 0 : model_.nodes - 1}; }
  void lose(State& s) const;
  void act(State& s, NodeId id, const scheduler::ViewChange::Actions& actions);
  void take_flushed(State& s, const Message& m);
  bool may_come_back(const State& s, int rank) const;
  bool may_restore(const State& s, int rank) const;
  void restore(State& s, int rank);
  bool may_arrive(const State& s, std::size_t message) const;
  void take_partial(State& s, NodeId to, NodeId of, Key key, const Contents& sum);
  bool all_have_executed(const State& s, const Key& key) const;
  void check_seal(const State& s, const RoundEngine::Seal& a);
  void check_sum(State& s, NodeId id, const RoundEngine::Execute& a);
  bool is_as_sealed(State& s, NodeId id, const Key& key, const Contents& sum);
  void check_verdict(const State& s, const Worker& w, const RoundEngine::Verdict& a);
  void hand_out(State& s, NodeId id, const RoundEngine::Execute& a);
  /// What its members have published now.
  Contents publications(const State& s, const std::vector<Rank>& members) const;

  /// Steps the agent's core.
  template <class Step>
  const RoundEngine::Actions& step(Agent& agent, RoundCores::Event event, Step&& on);
  /// Hands a message to the core that it is for.
  const RoundEngine::Actions& deliver(Agent& to, const Message& m, Duration now);
  /// What that core would make of it.
  const RoundCores::Stepped& answer(const Core& to, const Message& m, Duration now);
  template <class Change>
  static scheduler::ViewChange::Actions change_view(Agent& agent, Change&& change);
  std::unique_ptr<test::TestPlan> plan(NodeId self) const;
  scheduler::Round round(Version v) const { return model_.answers.round(v); }
  std::int32_t arrived(const State& s, Version v) const;
  std::int32_t quorum(const State& s, Version v) const;
  /// Whose arrival fires v.
  const Worker& initiator(const State& s, Version v) const;
  bool has_arrived(const Worker& w, Version v) const;
  bool may_wait(const State& s, int rank) const;
  Agent& agent_of(State& s, int rank) const { return s.agents[index(node(rank))]; }
  const Agent& agent_of(const State& s, int rank) const { return s.agents[index(node(rank))]; }
  NodeId node(int rank) const { return model_.node_of[static_cast<std::size_t>(rank)]; }
  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id.value); }
  bool abandons(Version v) const { return round(v).late == scheduler::Lateness::abandons; }
  bool gives_once(Version v) const;
  bool spoils(State& s, Mutation mutation) const;
  void expect(bool holds, const std::string& what) {
    if (!holds && violation_.empty()) violation_ = what;
  }

  Model model_;
  Mutation mutation_;
  RoundCores cores_;
  std::string violation_;
};

template <class Step>
const RoundEngine::Actions& RoundShell::step(Agent& agent, RoundCores::Event event, Step&& on) {
  const auto& stepped = cores_.step(*agent.core, event, on);
  agent.core = stepped.core;
  return stepped.actions;
}

template <class Change>
scheduler::ViewChange::Actions RoundShell::change_view(Agent& agent, Change&& change) {
  scheduler::ViewChange changed = agent.view->change;
  auto actions = change(changed);
  agent.view = std::make_shared<const View>(std::move(changed));
  return actions;
}

}  // namespace paceline::explorer
