#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/cluster/other_agents.h"
#include "algorithms/cluster/turn_poller.h"
#include "runtime/observe/log.h"
#include "runtime/wire/codec.h"

namespace paceline::cluster {

/// An agent's links to the head and to the other agents: makes those that OtherAgents wants, and says what was lost
/// with one, or could not be sent. Owned by the agent's control loop.
class AgentLinks {
 public:
  struct Options {
    NodeId self;
    std::string head_address;
  };
  struct Listener {
    std::function<void()> turn;  ///< One begins in which something may have come.
    std::function<void(const transport::Peer&, const wire::Received&, std::vector<transport::Frame>&)> message;
    std::function<void()> head_gone;                                 ///< connect_head() is to follow.
    std::function<void(NodeId, const std::string& how)> gone;        ///< Another agent.
    std::function<void(NodeId, const Error&)> unsent;                ///< To another agent, there or not.
    std::function<void(NodeId, const actors::Capacity&)> reachable;  ///< It may be said again.
  };

  AgentLinks(Options options, std::unique_ptr<transport::Transport> transport, const Clock& clock,
             std::size_t messages_a_turn, observe::Log& log, Listener listener);

  /// Anew, if there is a link. It is not there yet when this returns, but takes what is sent to it.
  Result<void> connect_head();
  Result<void> watch(EventLoop& loop) { return poller_.watch(loop); }
  void poll() { poller_.poll(); }
  void tick(Instant now) { poller_.tick(now); }
  std::optional<Instant> next_deadline() const { return poller_.next_deadline(); }

  void on_hello(const transport::Peer& peer);
  void on_welcome(NodeId node) { act(others_.on_welcome(node)); }
  void on_nodes(const wire::Nodes::Reader& nodes);

  void send(const transport::Peer& peer, wire::Message& message, std::vector<transport::Piece> bulk = {});
  void send_frames(const transport::Peer& peer, std::vector<transport::Frame> frames);
  /// That this one is silent is to be noticed, or not any more.
  void depends_on(NodeId node, bool depends);
  const OtherAgents& others() const { return others_; }

 private:
  void on_event(transport::Event event);
  void act(const OtherAgents::Actions& actions);
  void carry_out(const OtherAgents::Connect& connect);
  void carry_out(const OtherAgents::TellLinked& told);
  void carry_out(const OtherAgents::Reachable& reachable) { listener_.reachable(reachable.node, reachable.has); }
  bool is_cut_off(const transport::Peer& peer);
  void note(const transport::Peer& peer, const Result<void>& sent);

  const Options options_;
  std::unique_ptr<transport::Transport> transport_;
  TurnPoller poller_;
  OtherAgents others_;
  observe::Log& log_;
  const Listener listener_;
};

}  // namespace paceline::cluster
