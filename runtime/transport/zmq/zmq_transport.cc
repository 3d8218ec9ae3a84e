#include "runtime/transport/zmq/zmq_transport.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "runtime/base/steady_now.h"
#include "runtime/transport/zmq/address.h"
#include "runtime/transport/zmq/gatekeeper.h"
#include "runtime/transport/zmq/links.h"
#include "runtime/transport/zmq/reach_probes.h"
#include "runtime/transport/zmq/ready_set.h"
#include "runtime/transport/zmq/sockets.h"

#if defined(__SANITIZE_THREAD__)
// TSan does not see how ZeroMQ, which is not instrumented, orders its threads.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libzmq.so\nrace:libzmq.so\nrace:libsodium.so\n";
}
#endif

namespace paceline::transport {
namespace {

constexpr auto kNameHeld = std::chrono::seconds(1);  // How long a greeting waits for the holder of its name to die.
constexpr std::size_t kBacklog = 64;                 // Messages kept of a peer that waits so.
constexpr std::size_t kTurn = 32;                    // Messages read from one source before the others have their turn.
constexpr int kCutsUntilRefused = 3;
constexpr int kListenerEvents =
    ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
// Who speaks another mechanism than CURVE may hang up before we could tell them. On ipc a look whether we live does so,
// too.
constexpr int kTcpListenerEvents = kListenerEvents | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
constexpr int kDialledEvents = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                               ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

/// Keys of a source's two descriptors in the ready set.
ReadySet::Key socket_key(std::uint64_t id) { return 2 * id; }
ReadySet::Key monitor_key(std::uint64_t id) { return 2 * id + 1; }

Error from_zmq(const zmq::error_t& error, const std::string& address) {
  switch (error.num()) {
    case EADDRINUSE:
      return {ErrorKind::invalid, address + ": address in use: choose another port, or * for any free one"};
    case EADDRNOTAVAIL:
      return {ErrorKind::invalid, address + ": no such address on this machine: use one of its own, or * for all"};
    case ENODEV: return {ErrorKind::invalid, address + ": no such network interface on this machine"};
    case EACCES:
      return {ErrorKind::invalid,
              address + ": permission denied: choose a port above 1023, or a directory of your own"};
    case EINVAL:
      return {ErrorKind::invalid, address + ": cannot be read as an address: use tcp://host:port or ipc:///path"};
    case EMFILE: return {ErrorKind::overloaded, address + ": too many open files or sockets: raise `ulimit -n`"};
    default: return {ErrorKind::internal, address + ": " + error.what()};
  }
}

class ZmqTransportImpl final : public ZmqTransport {
 public:
  ZmqTransportImpl(ZmqOptions options, ReadySet ready, int timer)
      : options_(std::move(options)), ready_(std::move(ready)), timer_(timer), context_(options_.io_threads) {
    context_.set(zmq::ctxopt::max_sockets, options_.sockets_max);
  }

  ~ZmqTransportImpl() override {
    const int linger = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(options_.linger).count());
    for (auto& [id, link] : dialled_)
      link.dealer.set(zmq::sockopt::linger, link.state == Dialled::State::up ? linger : 0);
    for (auto& [id, link] : listeners_) link.router.set(zmq::sockopt::linger, linger);
    ::close(timer_);
  }

  Result<void> open() {
    PACELINE_TRY(ready_.add(kTimerKey, timer_));
    if (!options_.keys) return {};
    try {
      gatekeeper_.emplace(context_, options_.keys->client.public_key);
    } catch (const zmq::error_t& error) {
      return tl::unexpected(from_zmq(error, "the cluster's keys"));
    }
    return ready_.add(kGatekeeperKey, gatekeeper_->fd());
  }

  Result<std::string> listen(const std::string& address) override;
  Result<void> connect(const Peer& peer, const std::string& address) override;
  void disconnect(const Peer& peer) override;
  Result<void> send(const Peer& peer, std::vector<Frame>&& frames) override;
  Result<void> send_pieces(const Peer& peer, Frame&& head, std::vector<Piece>&& pieces) override;
  std::optional<Event> poll(Duration timeout) override;
  int descriptor() const override { return ready_.descriptor(); }
  Reach reach(const std::string& address) override { return probes_.reach(address); }

 private:
  static constexpr ReadySet::Key kTimerKey = 0;
  static constexpr ReadySet::Key kGatekeeperKey = 1;

  /// Where messages to a peer go: a dialled link, or (with a route) a listener's connection.
  struct Way {
    std::uint64_t link = 0;
    std::string route;
  };

  Result<Scheme> check_address(const std::string& address, bool listening) const;
  void set_up(zmq::socket_t& socket, const std::string& address) const;
  Result<void> check_message(const Peer& peer, std::size_t frames, bool begins) const;
  Result<void> check_size(const Peer& peer, std::size_t bytes) const;
  template <class Send>
  Result<void> pass(const Peer& peer, Send&& send);

  /// Reads once from a source; false: it had nothing.
  bool serve(ReadySet::Key key);
  bool serve_listener(std::uint64_t id, Listener& listener);
  bool serve_dialled(std::uint64_t id, Dialled& link);
  bool watch_listener(std::uint64_t id, Listener& listener);
  bool watch_dialled(std::uint64_t id, Dialled& link);
  bool on_timer();

  void on_greeting(std::uint64_t id, Listener& listener, std::string route, int fd, const Peer& name);
  void admit(std::uint64_t id, Listener& listener, const std::string& route, int fd, const Peer& name);
  void refuse(Listener& listener, const std::string& route, const std::string& why);
  void bury(std::uint64_t id, Listener& listener);
  void admit_held(std::uint64_t id, Listener& listener);
  void on_control(std::uint64_t id, Dialled& link, const ControlMessage& control);
  void close(std::uint64_t id, Dialled& link, bool lingering);
  void tell(Event::Kind kind, Peer peer, std::vector<Frame> frames = {}, std::vector<Piece> pieces = {}) {
    events_.push_back({kind, std::move(peer), std::move(frames), std::move(pieces)});
  }
  void arm_timer();

  ZmqOptions options_;
  mutable ReadySet ready_;
  int timer_;
  zmq::context_t context_;  // Ends after the sockets below, waiting for their linger.
  std::optional<Gatekeeper> gatekeeper_;
  std::map<std::uint64_t, Listener> listeners_;
  std::map<std::uint64_t, Dialled> dialled_;
  std::unordered_map<Peer, Way> ways_;
  ReachProbes probes_;
  std::deque<Event> events_;
  std::uint64_t last_link_ = 0;
  std::uint32_t polls_ = 0;
};

Result<Scheme> ZmqTransportImpl::check_address(const std::string& address, bool listening) const {
  auto scheme = scheme_of(address);
  if (!scheme) return scheme;
  if (*scheme == Scheme::ipc) {
    PACELINE_TRY(check_ipc_directory(address));
    if (listening) PACELINE_TRY(check_ipc_unused(address));
  } else if (!options_.keys ? !options_.trusted : listening && options_.keys->server.secret_key.empty()) {
    return fail(ErrorKind::invalid,
                address + ": tcp needs the cluster's keys, here are none: name the cluster's key file");
  }
  return scheme;
}

void ZmqTransportImpl::set_up(zmq::socket_t& socket, const std::string& address) const {
  const int bound = static_cast<int>(options_.queue_bound);
  socket.set(zmq::sockopt::sndhwm, bound);
  socket.set(zmq::sockopt::rcvhwm, bound);
  socket.set(zmq::sockopt::maxmsgsize, options_.frame_bytes_max);
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::ipv6, address.find('[') != std::string::npos);
  if (!address.starts_with("tcp://")) return;
  // A host that vanished without a word is noticed by the kernel, in about 25 s; who is alive is decided above.
  socket.set(zmq::sockopt::tcp_keepalive, 1);
  socket.set(zmq::sockopt::tcp_keepalive_idle, 10);
  socket.set(zmq::sockopt::tcp_keepalive_intvl, 5);
  socket.set(zmq::sockopt::tcp_keepalive_cnt, 3);
  socket.set(zmq::sockopt::tcp_maxrt, 25'000);
}

Result<std::string> ZmqTransportImpl::listen(const std::string& address) {
  const auto scheme = check_address(address, true);
  if (!scheme) return tl::unexpected(scheme.error());
  const std::uint64_t id = ++last_link_;
  try {
    zmq::socket_t router(context_, zmq::socket_type::router);
    set_up(router, address);
    router.set(zmq::sockopt::router_mandatory, true);
    if (*scheme == Scheme::tcp && options_.keys) {
      router.set(zmq::sockopt::curve_server, true);
      router.set(zmq::sockopt::curve_secretkey, options_.keys->server.secret_key);
      router.set(zmq::sockopt::zap_domain, std::string(Gatekeeper::kDomain));
    } else if (*scheme == Scheme::ipc) {
      const uid_t us = ::geteuid();
      if (zmq_setsockopt(router.handle(), ZMQ_IPC_FILTER_UID, &us, sizeof us) != 0) throw zmq::error_t();
    }
    Monitor monitor(context_, router, id, *scheme == Scheme::tcp ? kTcpListenerEvents : kListenerEvents);
    router.bind(address);
    std::string real = router.get(zmq::sockopt::last_endpoint);
    const int fd = descriptor_of(router);
    const int monitor_fd = monitor.fd();
    listeners_.emplace(id, Listener{std::move(router), std::move(monitor), real});
    PACELINE_TRY(ready_.add(socket_key(id), fd));
    PACELINE_TRY(ready_.add(monitor_key(id), monitor_fd));
    return real;
  } catch (const zmq::error_t& error) {
    return tl::unexpected(from_zmq(error, address));
  }
}

Result<void> ZmqTransportImpl::connect(const Peer& peer, const std::string& address) {
  if (!is_name(peer)) return fail(ErrorKind::invalid, "peer name '" + peer + "': use 1 to 255 printable characters");
  if (ways_.contains(peer)) return fail(ErrorKind::invalid, peer + " is connected already: disconnect it first");
  const auto scheme = check_address(address, false);
  if (!scheme) return tl::unexpected(scheme.error());
  const std::uint64_t id = ++last_link_;
  try {
    zmq::socket_t dealer(context_, zmq::socket_type::dealer);
    set_up(dealer, address);
    dealer.set(zmq::sockopt::sndhwm, static_cast<int>(options_.queue_bound) + 1);  // And the greeting.
    dealer.set(zmq::sockopt::reconnect_ivl, 20);
    dealer.set(zmq::sockopt::reconnect_ivl_max, 500);
    if (*scheme == Scheme::tcp && options_.keys) {
      dealer.set(zmq::sockopt::curve_serverkey, options_.keys->server.public_key);
      dealer.set(zmq::sockopt::curve_publickey, options_.keys->client.public_key);
      dealer.set(zmq::sockopt::curve_secretkey, options_.keys->client.secret_key);
    }
    Monitor monitor(context_, dealer, id, kDialledEvents);
    dealer.connect(address);
    send_frames(dealer, nullptr, encode({Control::greeting, options_.self}));
    const int fd = descriptor_of(dealer);
    const int monitor_fd = monitor.fd();
    dialled_.emplace(id, Dialled{std::move(dealer), std::move(monitor), peer, address});
    ways_[peer] = Way{id, {}};
    PACELINE_TRY(ready_.add(socket_key(id), fd));
    PACELINE_TRY(ready_.add(monitor_key(id), monitor_fd));
    return {};
  } catch (const zmq::error_t& error) {
    return tl::unexpected(from_zmq(error, address));
  }
}

void ZmqTransportImpl::disconnect(const Peer& peer) {
  const auto found = ways_.find(peer);
  if (found == ways_.end()) return;
  const Way way = found->second;
  if (const auto link = dialled_.find(way.link); link != dialled_.end()) {
    close(way.link, link->second, true);
    return;
  }
  Listener& listener = listeners_.at(way.link);
  send_frames(listener.router, &way.route, encode({Control::farewell, {}}));
  ready_.touch(socket_key(way.link));
  listener.accepted.erase(way.route);
  ways_.erase(found);
}

Result<void> ZmqTransportImpl::send(const Peer& peer, std::vector<Frame>&& frames) {
  PACELINE_TRY(check_message(peer, frames.size(), !frames.empty() && !frames.front().empty()));
  for (const Frame& frame : frames) PACELINE_TRY(check_size(peer, frame.size()));
  return pass(peer, [&](zmq::socket_t& socket, const std::string* route) {
    return send_frames(socket, route, std::move(frames));
  });
}

Result<void> ZmqTransportImpl::send_pieces(const Peer& peer, Frame&& head, std::vector<Piece>&& pieces) {
  PACELINE_TRY(check_message(peer, 1 + pieces.size(), !head.empty()));
  PACELINE_TRY(check_size(peer, head.size()));
  for (const Piece& piece : pieces) PACELINE_TRY(check_size(peer, piece.bytes.size()));
  return pass(peer, [&](zmq::socket_t& socket, const std::string* route) {
    return transport::send_pieces(socket, route, std::move(head), std::move(pieces));
  });
}

Result<void> ZmqTransportImpl::check_message(const Peer& peer, std::size_t frames, bool begins) const {
  if (begins && frames <= kMaxFrames) return {};
  return fail(ErrorKind::invalid, "message to " + peer + " has " + std::to_string(frames) + " frames: 1 to " +
                                      std::to_string(kMaxFrames) + ", the first not empty");
}

Result<void> ZmqTransportImpl::check_size(const Peer& peer, std::size_t bytes) const {
  if (bytes <= static_cast<std::size_t>(options_.frame_bytes_max)) return {};
  return fail(ErrorKind::invalid, "frame of " + std::to_string(bytes) + " bytes to " + peer + ": the limit is " +
                                      std::to_string(options_.frame_bytes_max) + ": send it in parts");
}

/// Sends by the connection that the peer has.
template <class Send>
Result<void> ZmqTransportImpl::pass(const Peer& peer, Send&& send) {
  const auto gone = [&] { return fail(ErrorKind::disconnected, peer + " is not connected"); };
  const auto found = ways_.find(peer);
  if (found == ways_.end()) return gone();
  const Way& way = found->second;
  Sent sent = Sent::gone;
  if (way.route.empty()) {
    Dialled& link = dialled_.at(way.link);
    if (link.state == Dialled::State::lost || link.state == Dialled::State::refused) return gone();
    sent = send(link.dealer, nullptr);
  } else {
    Listener& listener = listeners_.at(way.link);
    Accepted& other = listener.accepted.at(way.route);
    if (other.gone) return gone();
    sent = send(listener.router, &way.route);
    if (sent == Sent::gone) listener.some_gone = other.gone = true;
  }
  ready_.touch(socket_key(way.link));
  if (sent == Sent::gone) return gone();
  if (sent == Sent::full) {
    return fail(ErrorKind::overloaded, peer + " does not keep up: " + std::to_string(options_.queue_bound) +
                                           " messages wait for it: retry later");
  }
  return {};
}

std::optional<Event> ZmqTransportImpl::poll(Duration timeout) {
  std::optional<Instant> start;  // The clock is read only where there is nothing better to do.
  if (++polls_ % 64 == 0) ready_.collect(Duration::zero());  // Monitors have their turn under full load, too.
  while (true) {
    while (events_.empty()) {
      const auto key = ready_.take();
      if (!key) break;
      bool more = true;
      for (std::size_t i = 0; i < kTurn && (more = serve(*key)); ++i) {
      }
      if (more) ready_.touch(*key);
    }
    if (!events_.empty()) {
      Event event = std::move(events_.front());
      events_.pop_front();
      return event;
    }
    ready_.collect(Duration::zero());
    if (ready_.any()) continue;
    if (timeout <= Duration::zero()) return std::nullopt;
    const Instant now = steady_now();
    const Duration left = timeout - (now - *(start = start.value_or(now)));
    if (left <= Duration::zero()) return std::nullopt;
    ready_.collect(left);
  }
}

bool ZmqTransportImpl::serve(ReadySet::Key key) {
  if (key == kTimerKey) return on_timer();
  if (key == kGatekeeperKey) return gatekeeper_->serve();
  const std::uint64_t id = key / 2;
  const bool is_monitor = key % 2 == 1;
  if (const auto listener = listeners_.find(id); listener != listeners_.end()) {
    return is_monitor ? watch_listener(id, listener->second) : serve_listener(id, listener->second);
  }
  if (const auto link = dialled_.find(id); link != dialled_.end()) {
    return is_monitor ? watch_dialled(id, link->second) : serve_dialled(id, link->second);
  }
  return false;
}

bool ZmqTransportImpl::watch_listener(std::uint64_t id, Listener& listener) {
  while (const auto happening = listener.monitor.next()) {
    switch (happening->event) {
      case ZMQ_EVENT_ACCEPTED: listener.open.insert(happening->value); break;
      case ZMQ_EVENT_DISCONNECTED: listener.on_closed(happening->value); break;
      default: tell(Event::Kind::refused, listener.address); break;
    }
  }
  if (listener.some_gone) ready_.touch(socket_key(id));  // It is buried when nothing more is read.
  return false;
}

bool ZmqTransportImpl::serve_listener(std::uint64_t id, Listener& listener) {
  auto message = receive(listener.router, true, options_.links);
  if (!message) {
    if (listener.some_gone) bury(id, listener);
    return false;
  }
  if (const auto known = listener.accepted.find(message->route); known != listener.accepted.end()) {
    if (message->oversized) {
      const Peer name = known->second.name;
      disconnect(name);
      tell(Event::Kind::disconnected, name);
    } else if (!is_control(message->frames) && !message->frames.empty()) {
      tell(Event::Kind::message, known->second.name, std::move(message->frames), std::move(message->pieces));
    }
    return true;
  }
  const auto held = std::find_if(listener.held.begin(), listener.held.end(),
                                 [&](const Held& h) { return h.route == message->route; });
  if (held != listener.held.end()) {
    if (held->backlog.size() < kBacklog && !message->oversized) {
      held->backlog.push_back(std::move(message->frames));
    } else {
      refuse(listener, held->route, "it sent more than can be kept while its name is taken");
      listener.held.erase(held);
    }
    return true;
  }
  const auto control = decode_control(message->frames);
  if (control && control->kind == Control::greeting && is_name(control->text)) {
    on_greeting(id, listener, std::move(message->route), message->fd, control->text);
  }
  return true;  // Of a stranger, or behind a farewell: dropped.
}

void ZmqTransportImpl::on_greeting(std::uint64_t id, Listener& listener, std::string route, int fd, const Peer& name) {
  // The monitor told of this connection before it gave this message, and of all earlier ones with the same descriptor.
  watch_listener(id, listener);
  if (!listener.open.contains(fd)) return;  // Came and went.
  for (auto& [other_route, other] : listener.accepted) {
    if (other.fd != fd || other.gone) continue;
    if (other_route > route) return;  // Routes count up: this is the greeting of an older connection that went down.
    listener.some_gone = other.gone = true;
  }
  if (listener.accepted.size() >= options_.peers_max) {
    refuse(listener, route, "there are " + std::to_string(options_.peers_max) + " peers already");
  } else if (ways_.contains(name)) {
    if (listener.held.size() >= options_.peers_max) return refuse(listener, route, "too many wait for their names");
    if (options_.links) tell(Event::Kind::contested, name);
    listener.held.push_back({std::move(route), name, fd, steady_now() + kNameHeld, {}});
    arm_timer();
  } else {
    admit(id, listener, route, fd, name);
  }
}

void ZmqTransportImpl::admit(std::uint64_t id, Listener& listener, const std::string& route, int fd, const Peer& name) {
  listener.accepted[route] = Accepted{name, fd};
  ways_[name] = Way{id, route};
  tell(Event::Kind::connected, name);
  send_frames(listener.router, &route, encode({Control::welcome, {}}));
  ready_.touch(socket_key(id));
}

void ZmqTransportImpl::refuse(Listener& listener, const std::string& route, const std::string& why) {
  send_frames(listener.router, &route, encode({Control::refusal, why}));
}

void ZmqTransportImpl::bury(std::uint64_t id, Listener& listener) {
  listener.some_gone = false;
  for (auto it = listener.accepted.begin(); it != listener.accepted.end();) {
    if (!it->second.gone) {
      ++it;
      continue;
    }
    ways_.erase(it->second.name);
    tell(Event::Kind::disconnected, it->second.name);
    it = listener.accepted.erase(it);
  }
  for (auto& [other_id, other] : listeners_) admit_held(other_id, other);
  ready_.touch(socket_key(id));
}

void ZmqTransportImpl::admit_held(std::uint64_t id, Listener& listener) {
  for (auto it = listener.held.begin(); it != listener.held.end();) {
    if (ways_.contains(it->name)) {
      ++it;
      continue;
    }
    Held held = std::move(*it);
    it = listener.held.erase(it);
    admit(id, listener, held.route, held.fd, held.name);
    for (auto& frames : held.backlog) {
      if (!is_control(frames) && !frames.empty()) tell(Event::Kind::message, held.name, std::move(frames));
    }
  }
}

bool ZmqTransportImpl::on_timer() {
  std::uint64_t expirations = 0;
  if (::read(timer_, &expirations, sizeof expirations) < 0) return false;
  const Instant now = steady_now();
  for (auto& [id, listener] : listeners_) {
    admit_held(id, listener);
    for (const Held& held : listener.held) {
      if (held.until <= now) refuse(listener, held.route, "another peer is called " + held.name);
    }
    std::erase_if(listener.held, [&](const Held& held) { return held.until <= now; });
    ready_.touch(socket_key(id));
  }
  arm_timer();
  return false;
}

void ZmqTransportImpl::arm_timer() {
  std::optional<Instant> first;
  for (const auto& [id, listener] : listeners_) {
    for (const Held& held : listener.held) first = std::min(first.value_or(held.until), held.until);
  }
  if (!first) return;
  const auto wait = std::max<Duration>(*first - steady_now(), std::chrono::milliseconds(1)).count();
  itimerspec spec{};
  spec.it_value.tv_sec = wait / 1'000'000'000;
  spec.it_value.tv_nsec = wait % 1'000'000'000;
  ::timerfd_settime(timer_, 0, &spec, nullptr);
}

bool ZmqTransportImpl::watch_dialled(std::uint64_t id, Dialled& link) {
  using State = Dialled::State;
  while (const auto happening = link.monitor.next()) {
    if (link.state == State::lost || link.state == State::refused) continue;
    switch (happening->event) {
      case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
        if (link.state == State::dialling) link.state = State::shaken;
        break;
      case ZMQ_EVENT_DISCONNECTED:
        if (link.state != State::dialling)
          link.state = State::lost;
        else if (++link.cuts >= kCutsUntilRefused)
          link.state = State::refused;  // Not our key: a server just hangs up.
        break;
      default: link.state = State::refused; break;
    }
  }
  if (link.state == State::lost || link.state == State::refused) ready_.touch(socket_key(id));
  return false;
}

bool ZmqTransportImpl::serve_dialled(std::uint64_t id, Dialled& link) {
  using State = Dialled::State;
  auto message = receive(link.dealer, false, options_.links);
  if (message) {
    if (message->oversized) {
      link.state = State::lost;
    } else if (const auto control = decode_control(message->frames)) {
      on_control(id, link, *control);
    } else if (link.welcomed && !message->frames.front().empty()) {
      tell(Event::Kind::message, link.name, std::move(message->frames), std::move(message->pieces));
    }
    return true;
  }
  if (link.state == State::lost) {
    tell(Event::Kind::disconnected, link.name);
    close(id, link, false);
  } else if (link.state == State::refused) {
    tell(Event::Kind::refused, link.address);
    close(id, link, false);
  }
  return false;
}

void ZmqTransportImpl::on_control(std::uint64_t, Dialled& link, const ControlMessage& control) {
  using State = Dialled::State;
  switch (control.kind) {
    case Control::welcome:
      if (link.welcomed) break;
      link.welcomed = true;
      if (link.state != State::lost) link.state = State::up;
      tell(Event::Kind::connected, link.name);
      break;
    case Control::refusal: link.state = State::refused; break;
    case Control::farewell: link.state = State::lost; break;
    case Control::greeting: break;
  }
}

void ZmqTransportImpl::close(std::uint64_t id, Dialled& link, bool lingering) {
  const auto linger = std::chrono::ceil<std::chrono::milliseconds>(options_.linger).count();
  link.dealer.set(zmq::sockopt::linger, lingering && link.state == Dialled::State::up ? static_cast<int>(linger) : 0);
  ready_.remove(socket_key(id), descriptor_of(link.dealer));
  ready_.remove(monitor_key(id), link.monitor.fd());
  ways_.erase(link.name);
  dialled_.erase(id);
  for (auto& [other_id, other] : listeners_) admit_held(other_id, other);
}

}  // namespace

Result<std::unique_ptr<Transport>> ZmqTransport::create(ZmqOptions options) {
  if (!is_name(options.self))
    return fail(ErrorKind::invalid, "name '" + options.self + "': use 1 to 255 printable characters");
  if (options.queue_bound < 1 || options.queue_bound > 1'000'000) {
    return fail(ErrorKind::invalid, "queue_bound " + std::to_string(options.queue_bound) + ": use 1 to 1000000");
  }
  if (options.io_threads < 1 || options.io_threads > 64) {
    return fail(ErrorKind::invalid, "io_threads " + std::to_string(options.io_threads) + ": use 1 to 64");
  }
  auto ready = ReadySet::create();
  if (!ready) return tl::unexpected(ready.error());
  const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (timer < 0) return fail_errno("timerfd_create");
  try {
    auto transport = std::make_unique<ZmqTransportImpl>(std::move(options), std::move(ready).value(), timer);
    PACELINE_TRY(transport->open());
    return transport;
  } catch (const zmq::error_t& error) {
    ::close(timer);
    return fail(ErrorKind::internal, std::string("ZeroMQ: ") + error.what());
  }
}

}  // namespace paceline::transport
