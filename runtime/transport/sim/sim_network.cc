#include "runtime/transport/sim/sim_network.h"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "runtime/base/check.h"

namespace paceline::transport {
namespace {

using Pair = std::pair<Peer, Peer>;

/// One side's end of a connection. `id` is the same on both sides; a later connection of the same two has another.
struct End {
  std::uint64_t id = 0;
  Peer other;           // The name of the endpoint there.
  Peer alias;           // What this side calls it.
  std::string address;  // That was dialled; empty at the listener's side.
};

/// Something under way to `to`.
struct Flight {
  enum class Kind { dial, accept, refusal, message, closing };
  Kind kind = Kind::message;
  Peer from, to;
  std::uint64_t connection = 0;
  std::vector<Frame> frames;
  std::string address;
  bool is_refused = false;  // A dial.
};

struct Node {
  bool paused = false;
  std::uint64_t incarnation = 0;
  std::set<std::string> listening;
  std::map<Peer, End> ends;  // By alias. Ordered, as all here: iteration is observable.
  struct Dial {
    Peer alias;
    std::string address;
  };
  std::map<std::uint64_t, Dial> dials;                             // Not answered yet, by connection.
  std::map<std::uint64_t, std::vector<std::vector<Frame>>> early;  // Sent before the answer.
  std::deque<std::pair<std::uint64_t, Event>> inbox;               // With the connection that a message came by.
};

}  // namespace

class SimNetwork::State {
 public:
  State(std::uint64_t seed, std::size_t queue_bound) : bound(queue_bound), random(seed) {}

  Node* find(const Peer& name) {
    const auto it = nodes.find(name);
    return it == nodes.end() ? nullptr : &it->second;
  }

  /// Even in [0, 1); the same on every platform.
  double draw() { return static_cast<double>(random() >> 11) * 0x1.0p-53; }

  const LinkFaults& faults_of(const Peer& from, const Peer& to) const {
    const auto it = faults.find({from, to});
    return it == faults.end() ? default_faults : it->second;
  }

  bool is_cut(const Peer& a, const Peer& b) const { return cuts.contains(std::minmax(a, b)); }

  void dispatch(Flight flight) {
    const LinkFaults& f = faults_of(flight.from, flight.to);
    // Always the same number of draws, so that one fault does not shift the others' dice.
    const double drop = draw(), duplicate = draw(), reorder = draw(), jitter = draw(), late = draw();
    const bool is_message = flight.kind == Flight::Kind::message;
    if (is_message && drop < f.drop) {
      ++counts.lost;
      return;
    }
    flight.is_refused = flight.kind == Flight::Kind::dial && drop < f.refuse;
    Instant at = now + f.latency + scaled(f.jitter, jitter);
    Instant& last = last_arrival[{flight.from, flight.to}];
    if (is_message && reorder < f.reorder) {
      at = std::max(at, last) + scaled(f.reorder_by, late);
    } else {
      at = last = std::max(at, last);
    }
    if (is_message && duplicate < f.duplicate) enqueue(at + scaled(f.reorder_by, late), flight);
    enqueue(at, std::move(flight));
  }

  void enqueue(Instant at, Flight flight) {
    if (flight.kind == Flight::Kind::message) ++waiting[{flight.connection, flight.to}];
    flights.emplace(std::pair(at, ++last_flight), std::move(flight));
  }

  void arrive(Flight flight) {
    const bool is_message = flight.kind == Flight::Kind::message;
    if (is_cut(flight.from, flight.to)) {
      if (is_message) {
        lose(flight);
      } else {
        held.push_back(std::move(flight));
      }
      return;
    }
    Node* node = find(flight.to);
    switch (flight.kind) {
      case Flight::Kind::dial: return on_dial(flight, node);
      case Flight::Kind::accept: return on_accept(flight, node);
      case Flight::Kind::refusal: return on_refusal(flight, node);
      case Flight::Kind::message: return on_message(flight, node);
      case Flight::Kind::closing: return on_closing(flight, node);
    }
  }

  /// Sends a dial on its way if somebody listens there; else it waits until somebody does.
  void dial(const Peer& from, std::uint64_t connection, const std::string& address) {
    const auto listener = listeners.find(address);
    if (listener == listeners.end()) {
      waiting_dials.push_back({from, connection, address});
      return;
    }
    dispatch({Flight::Kind::dial, from, listener->second, connection, {}, address});
  }

  void on_listen(const std::string& address) {
    auto all = std::exchange(waiting_dials, {});
    for (auto& waiting_dial : all) {
      if (waiting_dial.address != address) {
        waiting_dials.push_back(waiting_dial);
      } else {
        dial(waiting_dial.from, waiting_dial.connection, address);
      }
    }
  }

  /// Ends a node's part in everything, and tells its peers.
  void remove(const Peer& name) {
    Node* node = find(name);
    if (node == nullptr) return;
    for (const auto& address : node->listening) listeners.erase(address);
    for (const auto& [alias, end] : node->ends) close(name, end);
    for (const auto& [connection, event] : node->inbox) settle(connection, name);
    std::erase_if(waiting_dials, [&](const WaitingDial& w) { return w.from == name; });
    nodes.erase(name);
  }

  void close(const Peer& name, const End& end) { dispatch({Flight::Kind::closing, name, end.other, end.id, {}, {}}); }

  /// A message on this connection to `to` is not under way any more.
  void settle(std::uint64_t connection, const Peer& to) {
    const auto it = waiting.find({connection, to});
    if (it != waiting.end() && --it->second == 0) waiting.erase(it);
  }

  void lose(const Flight& flight) {
    ++counts.lost;
    settle(flight.connection, flight.to);
  }

  std::size_t queued(const End& end) const {
    const auto it = waiting.find({end.id, end.other});
    return it == waiting.end() ? 0 : it->second;
  }

  static End* end_of(Node& node, std::uint64_t connection) {
    for (auto& [alias, end] : node.ends) {
      if (end.id == connection) return &end;
    }
    return nullptr;
  }

  struct WaitingDial {
    Peer from;
    std::uint64_t connection;
    std::string address;
  };

  Instant now{};
  std::size_t bound;
  Counts counts;
  std::map<Peer, Node> nodes;
  std::map<std::string, Peer> listeners;
  std::map<Pair, LinkFaults> faults;
  LinkFaults default_faults;
  std::set<Pair> cuts;
  std::vector<Flight> held;  // News that a partition keeps back.
  std::vector<WaitingDial> waiting_dials;
  std::map<std::pair<Instant, std::uint64_t>, Flight> flights;  // By arrival, then by departure.
  std::map<Pair, Instant> last_arrival;
  std::map<std::pair<std::uint64_t, Peer>, std::size_t>
      waiting;  // Messages in flight or in an inbox, by connection and receiver.
  std::uint64_t last_connection = 0;
  std::uint64_t last_flight = 0;
  std::uint64_t last_incarnation = 0;

 private:
  static Duration scaled(Duration whole, double part) {
    return Duration(static_cast<Duration::rep>(static_cast<double>(whole.count()) * part));
  }

  void on_dial(const Flight& flight, Node* node) {
    const Node* dialler = find(flight.from);
    if (dialler == nullptr || !dialler->dials.contains(flight.connection)) return;  // Gave up.
    if (node == nullptr || !node->listening.contains(flight.address))
      return dial(flight.from, flight.connection, flight.address);
    if (flight.is_refused || node->ends.contains(flight.from)) {
      dispatch({Flight::Kind::refusal, flight.to, flight.from, flight.connection, {}, flight.address});
      return;
    }
    node->ends[flight.from] = End{flight.connection, flight.from, flight.from, {}};
    node->inbox.push_back({0, Event{Event::Kind::connected, flight.from, {}}});
    dispatch({Flight::Kind::accept, flight.to, flight.from, flight.connection, {}, flight.address});
  }

  void on_accept(const Flight& flight, Node* node) {
    if (node == nullptr || !node->dials.contains(flight.connection)) {  // Gave up meanwhile.
      dispatch({Flight::Kind::closing, flight.to, flight.from, flight.connection, {}, {}});
      return;
    }
    const Peer alias = node->dials[flight.connection].alias;
    node->ends[alias] = End{flight.connection, flight.from, alias, flight.address};
    node->dials.erase(flight.connection);
    node->inbox.push_back({0, Event{Event::Kind::connected, alias, {}}});
    auto early = node->early.extract(flight.connection);
    if (early.empty()) return;
    for (auto& frames : early.mapped()) {
      dispatch({Flight::Kind::message, flight.to, flight.from, flight.connection, std::move(frames), {}});
    }
  }

  void on_refusal(const Flight& flight, Node* node) {
    if (node == nullptr || node->dials.erase(flight.connection) == 0) return;
    node->early.erase(flight.connection);
    node->inbox.push_back({0, Event{Event::Kind::refused, flight.address, {}}});
  }

  void on_message(Flight& flight, Node* node) {
    End* end = node == nullptr ? nullptr : end_of(*node, flight.connection);
    if (end == nullptr) return lose(flight);
    ++counts.delivered;
    for (const auto& frame : flight.frames) counts.bytes += frame.size();
    node->inbox.push_back({flight.connection, Event{Event::Kind::message, end->alias, std::move(flight.frames)}});
  }

  void on_closing(const Flight& flight, Node* node) {
    End* end = node == nullptr ? nullptr : end_of(*node, flight.connection);
    if (end == nullptr) return;
    const Peer alias = end->alias;
    node->ends.erase(alias);
    node->inbox.push_back({0, Event{Event::Kind::disconnected, alias, {}}});
  }

  std::mt19937_64 random;  // Its sequence is fixed by the standard; the library's distributions are not.
};

class SimNetwork::Endpoint final : public Transport {
 public:
  Endpoint(std::shared_ptr<State> state, Peer name, std::uint64_t incarnation)
      : state_(std::move(state)), name_(std::move(name)), incarnation_(incarnation) {}

  ~Endpoint() override {
    if (node() != nullptr) state_->remove(name_);
  }

  Result<std::string> listen(const std::string& address) override {
    Node* me = node();
    if (me == nullptr) return dead();
    std::string real = address;
    if (const auto star = real.find('*'); star != std::string::npos) {
      std::size_t port = 1;
      do {
        real = std::string(address).replace(star, 1, std::to_string(port++));
      } while (state_->listeners.contains(real));
    }
    if (!state_->listeners.emplace(real, name_).second) {
      return fail(ErrorKind::invalid, real + ": address in use: choose another, or * for any free one");
    }
    me->listening.insert(real);
    state_->on_listen(real);
    return real;
  }

  Result<void> connect(const Peer& peer, const std::string& address) override {
    Node* me = node();
    if (me == nullptr) return dead();
    const bool dialling =
        std::any_of(me->dials.begin(), me->dials.end(), [&](const auto& d) { return d.second.alias == peer; });
    if (dialling || me->ends.contains(peer)) {
      return fail(ErrorKind::invalid, peer + " is connected already: disconnect it first");
    }
    const std::uint64_t connection = ++state_->last_connection;
    me->dials[connection] = {peer, address};
    state_->dial(name_, connection, address);
    return {};
  }

  void disconnect(const Peer& peer) override {
    Node* me = node();
    if (me == nullptr) return;
    if (const auto end = me->ends.find(peer); end != me->ends.end()) {
      state_->close(name_, end->second);
      me->ends.erase(end);
    }
    for (auto it = me->dials.begin(); it != me->dials.end();) {
      if (it->second.alias != peer) {
        ++it;
        continue;
      }
      me->early.erase(it->first);
      it = me->dials.erase(it);
    }
  }

  Result<void> send(const Peer& peer, std::vector<Frame>&& frames) override {
    Node* me = node();
    if (me == nullptr) return dead();
    if (frames.empty() || frames.front().empty()) {
      return fail(ErrorKind::invalid, "message to " + peer + ": at least one frame, the first not empty");
    }
    const auto full = [&] {
      return fail(ErrorKind::overloaded,
                  peer + " does not keep up: " + std::to_string(state_->bound) + " messages wait for it: retry later");
    };
    for (auto& [connection, dial] : me->dials) {
      if (dial.alias != peer) continue;
      auto& early = me->early[connection];
      if (early.size() >= state_->bound) return full();
      early.push_back(std::move(frames));
      return {};
    }
    const auto end = me->ends.find(peer);
    if (end == me->ends.end()) return fail(ErrorKind::disconnected, peer + " is not connected");
    if (state_->queued(end->second) >= state_->bound) return full();
    state_->dispatch({Flight::Kind::message, name_, end->second.other, end->second.id, std::move(frames), {}});
    return {};
  }

  std::optional<Event> poll(Duration) override {
    Node* me = node();
    if (me == nullptr || me->paused || me->inbox.empty()) return std::nullopt;
    auto [connection, event] = std::move(me->inbox.front());
    me->inbox.pop_front();
    if (connection != 0) state_->settle(connection, name_);
    return std::move(event);
  }

  int descriptor() const override { return -1; }

  Reach reach(const std::string& address) override {
    if (node() == nullptr) return Reach::unknown;
    const auto listener = state_->listeners.find(address);
    if (listener == state_->listeners.end()) return Reach::refuses;
    return state_->is_cut(name_, listener->second) ? Reach::unknown : Reach::listens;
  }

 private:
  /// nullptr once this endpoint was killed, even if another one lives under its name.
  Node* node() const {
    Node* found = state_->find(name_);
    return found != nullptr && found->incarnation == incarnation_ ? found : nullptr;
  }
  tl::unexpected<Error> dead() const { return fail(ErrorKind::disconnected, name_ + " was killed"); }

  std::shared_ptr<State> state_;
  Peer name_;
  std::uint64_t incarnation_;
};

SimNetwork::SimNetwork(std::uint64_t seed, std::size_t queue_bound)
    : state_(std::make_shared<State>(seed, queue_bound)) {}
SimNetwork::~SimNetwork() = default;

std::unique_ptr<Transport> SimNetwork::endpoint(const Peer& name) {
  PACELINE_CHECK(state_->find(name) == nullptr, "an endpoint of this name lives");
  Node& node = state_->nodes[name];
  node.incarnation = ++state_->last_incarnation;
  return std::make_unique<Endpoint>(state_, name, node.incarnation);
}

void SimNetwork::set_faults(const LinkFaults& faults) { state_->default_faults = faults; }

void SimNetwork::set_faults(const Peer& from, const Peer& to, const LinkFaults& faults) {
  state_->faults[{from, to}] = faults;
}

void SimNetwork::partition(const Peer& a, const Peer& b) { state_->cuts.insert(std::minmax(a, b)); }

void SimNetwork::heal(const Peer& a, const Peer& b) {
  state_->cuts.erase(std::minmax(a, b));
  auto all = std::exchange(state_->held, {});
  for (Flight& flight : all) {
    if (state_->is_cut(flight.from, flight.to)) {
      state_->held.push_back(std::move(flight));
    } else {
      state_->dispatch(std::move(flight));
    }
  }
}

void SimNetwork::cut(const Peer& a, const Peer& b) {
  for (const auto& [name, other] : {std::pair(a, b), std::pair(b, a)}) {
    Node* node = state_->find(name);
    if (node == nullptr) continue;
    for (auto it = node->ends.begin(); it != node->ends.end();) {
      if (it->second.other != other) {
        ++it;
        continue;
      }
      node->inbox.push_back({0, Event{Event::Kind::disconnected, it->first, {}}});
      it = node->ends.erase(it);
    }
  }
}

void SimNetwork::kill(const Peer& name) { state_->remove(name); }

void SimNetwork::pause(const Peer& name) {
  if (Node* node = state_->find(name)) node->paused = true;
}

void SimNetwork::resume(const Peer& name) {
  if (Node* node = state_->find(name)) node->paused = false;
}

Instant SimNetwork::now() const { return state_->now; }

std::optional<Instant> SimNetwork::next_event() const {
  if (state_->flights.empty()) return std::nullopt;
  return state_->flights.begin()->first.first;
}

void SimNetwork::advance(Instant to) {
  PACELINE_CHECK(to >= state_->now, "time does not go backwards");
  while (!state_->flights.empty() && state_->flights.begin()->first.first <= to) {
    auto flight = state_->flights.extract(state_->flights.begin());
    state_->now = flight.key().first;
    state_->arrive(std::move(flight.mapped()));
  }
  state_->now = to;
}

SimNetwork::Counts SimNetwork::counts() const { return state_->counts; }

}  // namespace paceline::transport
