#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/views/view_change.h"
#include "tests/sim/explorer/bytes.h"
#include "tests/sim/explorer/told.h"

// What the walks of strategies without rounds have in common: messages, the loss of an agent, views, moves.

namespace paceline::explorer {

using scheduler::ViewChange;

/// What befalls the last agent, somewhere.
enum class Loss : std::uint8_t {
  none,
  crash,  ///< It ends, with its workers. What it has sent may arrive at who has not heard of that.
  pause,  ///< It stands still, the head takes it for lost, and it goes on: what it sends may arrive in the same way.
};

/// One thing that can happen next.
struct ClusterMove {
  enum class Kind : std::uint8_t {
    begin,
    body,
    report,
    arrive,
    want,
    pass_over,
    complain,
    deliver,
    work,
    hear_loss,
    die,
    pause,
    thaw,
    lose
  };
  Kind kind;
  int who;
  int to = 0;
};
std::string print(const ClusterMove& move);

/// The word behind what is passed on.
struct Flushed {
  std::set<NodeId> lost;
};

/// What is under way between agents, and who is in the job as each of them knows it.
template <class Body>
struct Network {
  using Message = std::variant<Body, Flushed>;
  std::map<std::pair<NodeId, NodeId>, std::vector<Message>> wires;  ///< First in, first out.
  std::vector<ToldPtr<ViewChange>> views;
  std::set<NodeId> without;  ///< Agents that go on without the last one.
  bool lost = false;
};

template <class Body>
void put(std::string& out, const Network<Body>& network) {
  for (const auto& [ends, wire] : network.wires) {
    put(out, ends.first.value);
    put(out, ends.second.value);
    for (const auto& message : wire) {
      if (const auto* body = std::get_if<Body>(&message)) {
        put(out, *body);
      } else {
        put(out, 99);
      }
    }
    put(out, 100);
  }
  for (const auto& view : network.views) out += view->print;
  for (const NodeId agent : network.without) put(out, agent.value);
  put(out, network.lost);
}

/// The part of a shell that knows agents, messages and what befalls them and workers. A state has `network`, of agents
/// that have `work`, workers, and `spoilt`; mutations have the defects of views by the names below.
template <class S, class Mutation>
class ClusterShell {
 public:
  using State = S;
  using Move = ClusterMove;
  using Kind = Move::Kind;
  using Body = typename S::Body;

  virtual ~ClusterShell() = default;
  ClusterShell(const ClusterShell&) = delete;
  ClusterShell& operator=(const ClusterShell&) = delete;

  const std::string& violation() const { return violation_; }
  /// What befalls workers, once each, and the last agent.
  std::vector<Move> faults(const State& s) const {
    std::vector<Move> all;
    for (int i = 0; i < workers(); ++i) {
      const auto& w = worker(s, Rank{i});
      if (w.paused && !w.dead) all.push_back({Kind::thaw, i});
      if (w.dead || w.phase == std::remove_cvref_t<decltype(w)>::Phase::over || is_of_lost(s, i)) continue;
      if (crash_ && !s.crash_used) all.push_back({Kind::die, i});
      if (pause_ && !s.pause_used) all.push_back({Kind::pause, i});
    }
    if (loss_ != Loss::none && !s.network.lost) all.push_back({Kind::lose, last().value});
    return all;
  }

 protected:
  template <class Model>
  ClusterShell(const Model& model, Mutation mutation)
      : mutation_(mutation),
        node_of_(model.node_of),
        nodes_(model.nodes),
        crash_(model.crash),
        pause_(model.pause),
        loss_(model.loss) {}

  /// A message of one that is not lost, as far as it is known.
  virtual void take(State& s, NodeId to, const Body& message) = 0;
  virtual void work(State& s, NodeId agent) = 0;
  virtual void die(State& s, Rank rank) = 0;
  /// The last agent and its workers end.
  virtual void end_last(State& s) = 0;
  virtual void pass_on(State& s, NodeId self, NodeId to) = 0;
  virtual void go_on_without(State& s, NodeId self) = 0;

  void start_network(State& s) const {
    if (loss_ == Loss::none) return;
    for (std::int32_t n = 0; n < nodes_; ++n)
      s.network.views.push_back(std::make_shared<Told<ViewChange>>(
          ViewChange(NodeId{n}, std::set<NodeId>(node_of_.begin(), node_of_.end()))));
  }

  void add_steps(const State& s, std::vector<Move>& to) const {
    for (const auto& [ends, wire] : s.network.wires) to.push_back({Kind::deliver, ends.first.value, ends.second.value});
    for (int n = 0; n < nodes_; ++n) {
      if (!s.agents[static_cast<std::size_t>(n)].work.empty()) to.push_back({Kind::work, n});
      if (s.network.lost && NodeId{n} != last() && takes(s, NodeId{n}, last())) to.push_back({Kind::hear_loss, n});
    }
  }

  /// False: the move is of another kind.
  bool make_of_cluster(State& s, const Move& move) {
    const NodeId agent{move.who};
    switch (move.kind) {
      case Kind::pause: s.pause_used = worker(s, Rank{move.who}).paused = true; return true;
      case Kind::thaw: worker(s, Rank{move.who}).paused = false; return true;
      case Kind::die:
        s.crash_used = true;
        die(s, Rank{move.who});
        return true;
      case Kind::work: work(s, agent); return true;
      case Kind::deliver: deliver(s, agent, NodeId{move.to}); return true;
      case Kind::lose:
        s.network.lost = true;
        if (loss_ == Loss::crash) {
          for (std::int32_t n = 0; n < nodes_; ++n) s.network.wires.erase({NodeId{n}, last()});
          end_last(s);
        }
        return true;
      case Kind::hear_loss: {
        act(s, agent, tell(view(s, agent), [&](ViewChange& v) { return v.on_lost(last()); }));
        if (!still_takes()) s.network.wires.erase({last(), agent});
        if (mutation_ == Mutation::does_not_wait_for_the_flush && !s.network.without.contains(agent)) install(s, agent);
        return true;
      }
      default: return false;
    }
  }

  void send(State& s, NodeId from, NodeId to, const typename Network<Body>::Message& message) const {
    if (loss_ == Loss::crash && s.network.lost && to == last()) return;
    if (!takes(s, to, from) && !still_takes()) return;
    s.network.wires[{from, to}].push_back(message);
  }
  void send_to_others(State& s, NodeId from, const Body& message) const {
    for (const NodeId to : others(s, from)) send(s, from, to, message);
  }
  /// Those that this one does not go on without.
  std::vector<NodeId> others(const State& s, NodeId self) const {
    std::vector<NodeId> all;
    for (std::int32_t n = 0; n < nodes_; ++n)
      if (NodeId{n} != self && !(NodeId{n} == last() && s.network.without.contains(self))) all.emplace_back(n);
    return all;
  }

  NodeId last() const { return NodeId{nodes_ - 1}; }
  NodeId node(Rank rank) const { return node_of_[static_cast<std::size_t>(rank.value)]; }
  int workers() const { return static_cast<int>(node_of_.size()); }
  /// Whether it is, or may be, among those that are lost: nothing is promised to it.
  bool is_of_lost(const State& s, int rank) const { return s.network.lost && node(Rank{rank}) == last(); }
  bool may_be_lost(int rank) const { return loss_ != Loss::none && node(Rank{rank}) == last(); }
  static auto& worker(State& s, Rank rank) { return s.workers[static_cast<std::size_t>(rank.value)]; }
  static const auto& worker(const State& s, Rank rank) { return s.workers[static_cast<std::size_t>(rank.value)]; }
  auto& agent(State& s, NodeId id) const { return s.agents[static_cast<std::size_t>(id.value)]; }
  const auto& agent(const State& s, NodeId id) const { return s.agents[static_cast<std::size_t>(id.value)]; }

  /// True once, where the shell is to do this wrong.
  bool spoils(State& s, Mutation mutation) const {
    if (mutation != mutation_ || s.spoilt) return false;
    return s.spoilt = true;
  }
  void expect(bool holds, const std::string& what) {
    if (!holds && violation_.empty()) violation_ = what;
  }
  /// All that are left have heard of the loss, and go on.
  void check_views(const State& s) {
    if (!s.network.lost) return;
    for (std::int32_t n = 0; n + 1 < nodes_; ++n)
      expect(s.network.without.contains(NodeId{n}), "agent " + std::to_string(n) + " never goes on without the lost");
  }

  Mutation mutation_;

 private:
  static ToldPtr<ViewChange>& view(State& s, NodeId agent) {
    return s.network.views[static_cast<std::size_t>(agent.value)];
  }
  bool takes(const State& s, NodeId to, NodeId from) const {
    return loss_ == Loss::none || s.network.views[static_cast<std::size_t>(to.value)]->engine.members().contains(from);
  }
  bool still_takes() const { return mutation_ == Mutation::takes_from_the_lost; }

  void deliver(State& s, NodeId from, NodeId to) {
    auto& wire = s.network.wires[{from, to}];
    const bool newest = wire.size() > 1 && spoils(s, Mutation::overtakes);
    const auto message = newest ? wire.back() : wire.front();
    wire.erase(newest ? wire.end() - 1 : wire.begin());
    if (wire.empty()) s.network.wires.erase({from, to});
    if (const auto* body = std::get_if<Body>(&message)) return take(s, to, *body);
    const auto& lost = std::get<Flushed>(message).lost;
    act(s, to, tell(view(s, to), [&](ViewChange& v) { return v.on_flushed(from, lost); }));
  }

  void act(State& s, NodeId self, const ViewChange::Actions& actions) {
    for (const auto& action : actions) {
      if (const auto* flush = std::get_if<ViewChange::Flush>(&action)) {
        if (mutation_ != Mutation::passes_nothing_on) pass_on(s, self, flush->to);
        send(s, self, flush->to, Flushed{flush->lost});
      } else if (!s.network.without.contains(self)) {
        install(s, self);
      }
    }
  }

  void install(State& s, NodeId self) {
    s.network.without.insert(self);
    if (mutation_ != Mutation::goes_on_waiting_for_the_lost) go_on_without(s, self);
  }

  std::vector<NodeId> node_of_;
  std::int32_t nodes_;
  bool crash_, pause_;
  Loss loss_;
  std::string violation_;
};

}  // namespace paceline::explorer
