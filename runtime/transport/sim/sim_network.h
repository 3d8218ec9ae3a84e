#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/instant.h"
#include "runtime/transport/transport.h"

namespace paceline::transport {

/// What a direction between two endpoints does to messages. Probabilities are in [0, 1].
struct LinkFaults {
  Duration latency{0};   ///< Every message takes this long,
  Duration jitter{0};    ///< and up to this much longer, evenly spread. The order is kept all the same.
  double drop = 0;       ///< Lost, silently.
  double duplicate = 0;  ///< Delivered twice; the second one like a message of its own.
  double reorder = 0;    ///< Takes up to `reorder_by` longer, and later ones do not wait for it.
  Duration reorder_by = std::chrono::milliseconds(10);
  double refuse = 0;  ///< A connection is refused, as where the one before it still has its name there.
};

/// A network of simulated endpoints under virtual time: who is told what, and when, follows from the seed and the calls
/// alone, bit for bit, on every machine.
///
/// Without faults it behaves as ZeroMQ does: in order for each pair, lossless, connections that go up and down with an
/// event, queues with a bound. Owned by one thread, with all its endpoints; these may outlive it. No I/O, no clock:
/// an endpoint's poll() never waits, time passes by advance() only.
class SimNetwork final : public Clock {
 public:
  explicit SimNetwork(std::uint64_t seed, std::size_t queue_bound = 4096);
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  /// A new endpoint called `name`. One that was killed or destroyed may come back under its name; a living one is a
  /// programmer's error.
  std::unique_ptr<Transport> endpoint(const Peer& name);

  /// For all directions that have no faults of their own.
  void set_faults(const LinkFaults& faults);
  void set_faults(const Peer& from, const Peer& to, const LinkFaults& faults);

  /// Nothing gets through between the two, either way, from now on: messages that would arrive are lost. News of
  /// connections made or closed waits for heal().
  void partition(const Peer& a, const Peer& b);
  void heal(const Peer& a, const Peer& b);
  /// The connection between the two goes down; both are told, and both live. What is under way on it is lost.
  void cut(const Peer& a, const Peer& b);
  /// The endpoint is dead at once: its peers are told `disconnected`, it hears and says nothing more.
  void kill(const Peer& name);
  /// The endpoint polls nothing until resume(); what comes meanwhile waits (SIGSTOP).
  void pause(const Peer& name);
  void resume(const Peer& name);

  Instant now() const override;
  /// When the next message or piece of news arrives; nullopt: never.
  std::optional<Instant> next_event() const;
  /// Delivers everything that arrives until `to`, `to` included; then it is `to`. Not backwards.
  void advance(Instant to);
  /// Messages that were delivered, lost (to faults or partitions), and their bytes.
  struct Counts {
    std::uint64_t delivered = 0;
    std::uint64_t lost = 0;
    std::uint64_t bytes = 0;
  };
  Counts counts() const;

 private:
  class State;
  class Endpoint;
  std::shared_ptr<State> state_;
};

}  // namespace paceline::transport
