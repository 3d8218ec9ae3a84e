#include "algorithms/cluster/agent_links.h"

#include <utility>
#include <variant>

#include "algorithms/cluster/requests.h"
#include "algorithms/cluster/training/peer_names.h"
#include "runtime/base/json.h"

namespace paceline::cluster {

AgentLinks::AgentLinks(Options options, std::unique_ptr<transport::Transport> transport, const Clock& clock,
                       std::size_t messages_a_turn, observe::Log& log, Listener listener)
    : options_(std::move(options)),
      transport_(std::move(transport)),
      poller_(*transport_, clock, messages_a_turn,
              {listener.turn, [this](transport::Event event) { on_event(std::move(event)); }}),
      others_(options_.self),
      log_(log),
      listener_(std::move(listener)) {}

Result<void> AgentLinks::connect_head() {
  others_.on_head_gone();
  transport_->disconnect(kHead);
  return transport_->connect(kHead, options_.head_address);
}

void AgentLinks::on_event(transport::Event event) {
  const NodeId from = node_of_peer(event.peer);
  if (event.kind == transport::Event::Kind::disconnected) {
    if (!event.cause.empty()) log_.warning(event.cause);
    if (event.peer == kHead) listener_.head_gone();
    if (from.value >= 0) {
      const std::string how = event.cause.empty() ? "its agent is gone" : event.cause;
      listener_.gone(from, how);
      act(others_.on_gone(from, how));
    }
  }
  if (event.kind == transport::Event::Kind::refused)
    log_.warning("a connection was refused, and is tried again: " + event.peer);
  if (event.kind != transport::Event::Kind::message || event.frames.empty()) return;
  const auto message = wire::Received::parse(std::move(event.frames.front()));
  if (!message) return log_.warning(event.peer + ": " + message.error().text);
  others_.heard(from);  // What it asks before it says welcome is to be answered, too.
  listener_.message(event.peer, *message, event.frames);
}

void AgentLinks::on_hello(const transport::Peer& peer) {
  send_frames(peer, {wire::welcome(peer, options_.self)});
  act(others_.on_hello(node_of_peer(peer)));
}

void AgentLinks::on_nodes(const wire::Nodes::Reader& nodes) {
  std::vector<OtherAgents::Known> known;
  for (const auto entry : nodes.getNodes())
    known.push_back({NodeId{entry.getNode()},
                     wire::text(entry.getAddress()),
                     {static_cast<double>(entry.getCpus()), static_cast<double>(entry.getMemory())}});
  act(others_.on_nodes(nodes.getEpoch(), known));
}

void AgentLinks::act(const OtherAgents::Actions& actions) {
  for (const auto& action : actions) std::visit([this](const auto& a) { carry_out(a); }, action);
}

void AgentLinks::carry_out(const OtherAgents::Connect& connect) {
  const auto peer = agent_peer(connect.node);
  transport_->disconnect(peer);
  if (auto connected = transport_->connect(peer, connect.address); !connected)
    log_.error("connect to " + peer + ": " + connected.error().text);
  wire::Message hello;  // Makes us known there by name, before anything is to be sent.
  auto body = hello.root().initHello();
  body.setRole("agent");
  body.setName(agent_peer(options_.self));
  if (const auto sent = transport_->send(peer, {hello.to_frame()}); !sent)
    log_.warning(peer + ": " + sent.error().text);
}

void AgentLinks::carry_out(const OtherAgents::TellLinked& told) {
  wire::Message linked;
  write_request(linked, kLinkedVerb, {{"epoch", told.epoch}});
  send(kHead, linked);
}

void AgentLinks::depends_on(NodeId node, bool depends) { transport_->depends_on(agent_peer(node), depends); }

void AgentLinks::send(const transport::Peer& peer, wire::Message& message, std::vector<transport::Piece> bulk) {
  if (!is_cut_off(peer)) note(peer, transport_->send_pieces(peer, message.to_frame(), std::move(bulk)));
}

void AgentLinks::send_frames(const transport::Peer& peer, std::vector<transport::Frame> frames) {
  if (!is_cut_off(peer)) note(peer, transport_->send(peer, std::move(frames)));
}

bool AgentLinks::is_cut_off(const transport::Peer& peer) {
  const auto why = others_.cut_off(node_of_peer(peer));
  if (why) note(peer, fail(ErrorKind::disconnected, *why));
  return why.has_value();
}

void AgentLinks::note(const transport::Peer& peer, const Result<void>& sent) {
  if (sent) return;
  log_.warning(peer + ": " + sent.error().text);
  if (const NodeId node = node_of_peer(peer); node.value >= 0) listener_.unsent(node, sent.error());
}

}  // namespace paceline::cluster
