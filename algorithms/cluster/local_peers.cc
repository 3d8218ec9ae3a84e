#include "algorithms/cluster/local_peers.h"

#include <utility>

#include "algorithms/cluster/training/peer_names.h"

namespace paceline::cluster {
namespace {

constexpr Duration kBacklogLook = std::chrono::milliseconds(1);

}  // namespace

LocalPeers::LocalPeers(std::unique_ptr<transport::Transport> transport, const Clock& clock, std::size_t messages_a_turn,
                       observe::Log& log, Listener listener)
    : transport_(std::move(transport)),
      backlog_(*transport_),
      poller_(*transport_, clock, messages_a_turn,
              {listener.turn, [this](transport::Event event) { on_event(std::move(event)); }}),
      clock_(clock),
      log_(log),
      listener_(std::move(listener)) {}

void LocalPeers::tick(Instant now) {
  backlog_.flush();
  poller_.tick(now);
}

std::optional<Instant> LocalPeers::next_deadline() const {
  return backlog_.empty() ? poller_.next_deadline() : earlier(poller_.next_deadline(), clock_.now() + kBacklogLook);
}

void LocalPeers::on_event(transport::Event event) {
  if (event.kind == transport::Event::Kind::disconnected) on_gone(event.peer);
  if (event.kind != transport::Event::Kind::message || event.frames.empty()) return;
  const auto message = wire::Received::parse(std::move(event.frames.front()));
  message ? listener_.message(event.peer, *message, event.frames)
          : void(send(event.peer, {wire::refusal(message.error())}));
}

void LocalPeers::on_gone(const transport::Peer& peer) {
  backlog_.forget(peer);
  listener_.gone(peer);
}

bool LocalPeers::send(const transport::Peer& peer, std::vector<transport::Frame> frames) {
  const auto sent = backlog_.send(peer, std::move(frames));
  // The end of one that is not there is told, or has been.
  if (!sent && sent.error().kind != ErrorKind::disconnected) give_up(peer, sent.error());
  return sent.has_value();
}

/// Its callers hear of it then.
void LocalPeers::give_up(const transport::Peer& peer, const Error& error) {
  log_.error(error.text + ": the connection ends");
  backlog_.forget(peer);
  if (const WorkerId worker = worker_of(peer); worker.value != 0) return listener_.end_worker(worker, error.text);
  transport_->disconnect(peer);
  on_gone(peer);
}

}  // namespace paceline::cluster
