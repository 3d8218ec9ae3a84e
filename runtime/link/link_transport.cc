#include "runtime/link/link_transport.h"

#include <algorithm>
#include <random>
#include <utility>

#include "runtime/transport/zmq/address.h"

namespace paceline::link {
namespace {

using transport::Event;
using transport::Peer;
using transport::Piece;
using transport::Reach;

constexpr std::size_t kTurn = 32;  // Messages read before poll() returns, although it has nothing to report.
constexpr Duration kStuckLook = std::chrono::milliseconds(1);
constexpr Duration kRedialMost = std::chrono::seconds(1);  // Where the first one is refused again and again.
// A dying process closes one thing after the other: it is asked again, at first soon.
constexpr Duration kFirstProbe = std::chrono::milliseconds(1);
constexpr Duration kProbeMost = std::chrono::milliseconds(100);
constexpr Duration kProbeAnswer = std::chrono::milliseconds(1);  // An answer is asked for again.

std::uint64_t random_incarnation() {
  std::random_device random;
  return (std::uint64_t{random()} << 32) | random() | 1;
}

/// A number; an ipc address is of this host. For pulses.
std::string host_of(const std::string& address) {
  return address.starts_with("ipc://") ? "127.0.0.1" : transport::host_and_port(address).first;
}

}  // namespace

LinkTransport::LinkTransport(std::unique_ptr<transport::Transport> below, Options options)
    : below_(std::move(below)), options_(std::move(options)) {
  if (options_.incarnation == 0) options_.incarnation = random_incarnation();
}

LinkTransport::~LinkTransport() {
  for (const auto& [peer, link] : links_) say_farewell(peer, link);
}

Instant LinkTransport::now() const { return options_.clock->now(); }

LinkTransport::Link LinkTransport::new_link(const Peer& peer, std::string dialled) {
  LinkCore::Options options;
  options.self = {options_.incarnation, ++last_link_};
  options.peer = peer;
  options.address = address_;
  options.heartbeat_every = options_.heartbeat_every;
  options.lease = options_.lease;
  options.stall = options_.stall;
  if (pulse_) options.pulse = pulse_->address();
  options.sending = options_.sending;
  options.receiving = options_.receiving;
  Link link{LinkCore(std::move(options)), std::move(dialled)};
  if (depended_on_.contains(peer)) link.core.depends_on(true, now());
  return link;
}

const LinkCore* LinkTransport::link(const Peer& peer) const {
  const auto found = links_.find(peer);
  return found == links_.end() ? nullptr : &found->second.core;
}

Result<std::string> LinkTransport::listen(const std::string& address) {
  auto real = below_->listen(address);
  if (!real) return real;
  address_ = *real;
  if (!options_.has_pulse || pulse_) return real;
  auto pulse = Pulse::open(host_of(*real));
  if (!pulse) return tl::unexpected(pulse.error());
  pulse_ = *std::move(pulse);
  return real;
}

Result<void> LinkTransport::connect(const Peer& peer, const std::string& address) {
  if (links_.contains(peer)) return fail(ErrorKind::invalid, peer + " is connected already: disconnect it first");
  PACELINE_TRY(below_->connect(peer, address));
  links_.emplace(peer, new_link(peer, address));
  return {};
}

void LinkTransport::disconnect(const Peer& peer) {
  const auto found = links_.find(peer);
  if (found == links_.end()) return;
  say_farewell(peer, found->second);
  below_->disconnect(peer);
  links_.erase(found);
}

void LinkTransport::say_farewell(const Peer& peer, const Link& link) {
  if (link.core.is_connected()) (void)below_->send(peer, {link.core.farewell()});
}

Result<void> LinkTransport::send(const Peer& peer, std::vector<Frame>&& frames) {
  const auto kept = std::make_shared<std::vector<Frame>>(std::move(frames));
  auto sent = pass(peer, transport::pieces_of(kept));
  if (!sent) frames = std::move(*kept);  // NOLINT(bugprone-use-after-move): as they were.
  return sent;
}

Result<void> LinkTransport::send_pieces(const Peer& peer, Frame&& head, std::vector<Piece>&& pieces) {
  const auto kept = std::make_shared<Frame>(std::move(head));
  pieces.insert(pieces.begin(), {kept, *kept});
  auto sent = pass(peer, std::move(pieces));
  if (sent) return sent;
  pieces.erase(pieces.begin());  // NOLINT(bugprone-use-after-move): as they were.
  head = std::move(*kept);
  return sent;
}

/// A message of a frame for each piece; they are untouched if it cannot be sent.
Result<void> LinkTransport::pass(const Peer& peer, std::vector<Piece>&& frames) {
  const auto found = links_.find(peer);
  if (found == links_.end()) return fail(ErrorKind::disconnected, peer + " is not connected");
  const bool has_class = options_.class_of && !frames.empty() && !frames.front().bytes.empty();
  const Class of = has_class ? options_.class_of(frames.front().bytes) : Class::requests;
  const Instant at = now();
  PACELINE_TRY(found->second.core.send(of, std::move(frames), at));
  found->second.was_sent_to = true;
  pump(peer, found->second, at);
  return {};
}

void LinkTransport::depends_on(const Peer& peer, bool depends) {
  const bool is_new = depends ? depended_on_.insert(peer).second : depended_on_.erase(peer) > 0;
  const auto found = links_.find(peer);
  if (is_new && found != links_.end()) found->second.core.depends_on(depends, now());
}

std::optional<Event> LinkTransport::poll(Duration timeout) {
  std::optional<Instant> until;
  is_busy_ = false;
  while (true) {
    std::size_t read = 0;
    for (; events_.empty() && read < kTurn; ++read) {
      auto event = below_->poll(Duration::zero());
      if (!event) break;
      take_in(*std::move(event));
    }
    if (events_.empty()) look_after_all(read < kTurn);
    if (!events_.empty()) {
      Event event = std::move(events_.front());
      events_.pop_front();
      return event;
    }
    if (timeout <= Duration::zero()) {
      is_busy_ = read == kTurn;
      return std::nullopt;
    }
    if (read == kTurn) continue;
    const Instant at = now();
    if (!until) until = at + timeout;
    if (at >= *until) return std::nullopt;
    const Instant wake = std::min(next_deadline().value_or(*until), *until);
    if (auto event = below_->poll(std::max(wake - at, Duration::zero()))) take_in(*std::move(event));
  }
}

std::optional<Instant> LinkTransport::next_deadline() const {
  std::optional<Instant> next = below_->next_deadline();
  const auto at = [&](std::optional<Instant> deadline) {
    if (deadline) next = std::min(next.value_or(*deadline), *deadline);
  };
  if (is_busy_ || !events_.empty()) at(now());
  for (const auto& [peer, link] : links_) {
    at(link.core.next_deadline());
    at(link.redial_at);
    at(link.probe_at);
    if (link.stuck) at(now() + kStuckLook);
  }
  return next;
}

void LinkTransport::take_in(Event event) {
  const Instant at = now();
  if (event.kind == Event::Kind::message) return on_message(std::move(event), at);
  if (event.kind == Event::Kind::refused) return on_refused(std::move(event), at);
  auto found = links_.find(event.peer);
  if (found == links_.end()) {
    if (event.kind != Event::Kind::connected || event.peer.empty()) return;
    found = links_.emplace(event.peer, new_link(event.peer, {})).first;
  }
  Link& link = found->second;
  switch (event.kind) {
    case Event::Kind::connected:
      link.core.on_connected(at);
      link.redial_at.reset();
      link.probe_at.reset();
      break;
    case Event::Kind::disconnected: on_lost(event.peer, link, at); break;
    case Event::Kind::contested: link.core.on_contested(at); break;
    default: return;
  }
  (void)settle(event.peer, link, at);
}

void LinkTransport::on_message(Event event, Instant at) {
  const auto found = links_.find(event.peer);
  if (found == links_.end() || event.frames.empty()) return;
  Link& link = found->second;
  std::vector<Piece> pieces = std::move(event.pieces);
  for (std::size_t i = 1; i < event.frames.size(); ++i) pieces.push_back({nullptr, event.frames[i]});
  link.core.on_received(event.frames.front(), pieces, at);
  const bool begins_anew = link.core.is_replaced() && link.dialled.empty();
  if (settle(event.peer, link, at) || !begins_anew) return;
  Link& next = links_.emplace(event.peer, new_link(event.peer, {})).first->second;
  next.core.on_connected(at);
  next.core.on_received(event.frames.front(), {}, at);
  (void)settle(event.peer, next, at);
}

/// The connection below is no more: the side that made it makes another.
void LinkTransport::on_lost(const Peer& peer, Link& link, Instant at) {
  link.core.on_lost(at);
  link.stuck.reset();
  link.probe_pause = kFirstProbe;
  link.probe_at = at + kFirstProbe;
  if (!link.dialled.empty() && !below_->connect(peer, link.dialled)) link.redial_at = at + kRedial;
}

/// Its old connection, or one of a process before this one, still has its name there, or its peer is just starting
/// anew. What was sent waits. The owner hears of it once.
void LinkTransport::on_refused(Event event, Instant at) {
  const auto found = std::find_if(links_.begin(), links_.end(), [&](const auto& entry) {
    return entry.second.dialled == event.peer && !entry.second.core.is_connected();
  });
  if (found == links_.end()) return events_.push_back(std::move(event));
  const Duration pause = found->second.core.is_open() ? kRedial : found->second.refused_pause;
  found->second.redial_at = at + pause;
  found->second.refused_pause = std::min(2 * pause, kRedialMost);
  if (!found->second.core.is_open() && !std::exchange(found->second.is_refusal_told, true))
    events_.push_back(std::move(event));
}

void LinkTransport::look_after_all(bool drained) {
  const Instant at = now();
  if (pulse_) hear_pulses(at);
  for (auto it = links_.begin(); it != links_.end();) {
    const auto next = std::next(it);  // It may end.
    if (drained) it->second.core.on_drained();
    look_after(it->first, it->second, at);
    it = next;
  }
}

void LinkTransport::look_after(const Peer& peer, Link& link, Instant at) {
  if (const auto due = link.core.next_deadline(); due && *due <= at) link.core.tick(at);
  if (link.core.wants_pulse()) ask_pulse(link);
  if (link.redial_at && *link.redial_at <= at) {
    link.redial_at.reset();
    if (!below_->connect(peer, link.dialled)) link.redial_at = at + kRedial;
  }
  if (link.probe_at && *link.probe_at <= at) {
    const std::string& address = link.dialled.empty() ? link.core.peer_address() : link.dialled;
    const Reach reach = address.empty() ? Reach::listens : below_->reach(address);
    if (reach != Reach::unknown) link.probe_pause = std::min(2 * link.probe_pause, kProbeMost);
    link.probe_at = at + (reach == Reach::unknown ? kProbeAnswer : link.probe_pause);
    if (reach == Reach::refuses) link.core.on_refused();
  }
  (void)settle(peer, link, at);
}

void LinkTransport::ask_pulse(Link& link) {
  const std::string& address = link.dialled.empty() ? link.core.peer_address() : link.dialled;
  if (!pulse_ || link.core.peer_pulse().port == 0 || address.empty()) return;
  link.asked_pulse = ++last_question_;
  pulse_->ask(host_of(address), link.core.peer_pulse(), last_question_);
}

void LinkTransport::hear_pulses(Instant at) {
  const bool any = std::any_of(links_.begin(), links_.end(), [](const auto& l) { return l.second.asked_pulse; });
  if (!any) return;
  for (const std::uint64_t question : pulse_->answers())
    for (auto& [peer, link] : links_)
      if (link.asked_pulse == question) {
        link.asked_pulse.reset();
        link.core.on_pulse(at);
      }
}

/// Reports what the core has, and does what it wants. False: the link is over, and no more.
bool LinkTransport::settle(const Peer& peer, Link& link, Instant at) {
  if (link.core.is_open() && !std::exchange(link.is_announced, true))
    events_.push_back({.kind = Event::Kind::connected, .peer = peer, .frames = {}});
  while (auto frames = link.core.take(at))
    events_.push_back({.kind = Event::Kind::message, .peer = peer, .frames = *std::move(frames)});
  if (link.core.over()) {
    if (link.is_announced || link.was_sent_to || !link.dialled.empty())
      events_.push_back({.kind = Event::Kind::disconnected,
                         .peer = peer,
                         .frames = {},
                         .pieces = {},
                         .cause = link.core.over()->text,
                         .is_silent = link.core.is_silent()});
    if (!link.core.is_replaced() || !link.dialled.empty()) {
      say_farewell(peer, link);
      below_->disconnect(peer);
    }
    links_.erase(links_.find(peer));  // `peer` is its own name.
    return false;
  }
  if (link.core.wants_new_connection()) {
    below_->disconnect(peer);
    on_lost(peer, link, at);
  }
  pump(peer, link, at);
  return true;
}

/// Sends what may go.
void LinkTransport::pump(const Peer& peer, Link& link, Instant at) {
  while (true) {
    auto packet = link.stuck ? std::exchange(link.stuck, std::nullopt) : link.core.next(at);
    if (!packet) return;
    const auto sent = below_->send_pieces(peer, std::move(packet->word), std::move(packet->pieces));
    if (sent) continue;
    // NOLINTNEXTLINE(bugprone-use-after-move): as it was. Else it goes on the next connection.
    if (sent.error().kind == ErrorKind::overloaded) link.stuck = std::move(packet);
    return;
  }
}

}  // namespace paceline::link
