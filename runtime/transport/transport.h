#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/instant.h"
#include "runtime/base/result.h"

namespace paceline::transport {

/// Name under which a peer is known to an endpoint ("agent/1", "worker/4294967298"); at most 255 bytes.
using Peer = std::string;
using Frame = std::vector<std::byte>;

/// What poll() reports.
struct Event {
  enum class Kind {
    message,       ///< `frames` from `peer`.
    connected,     ///< A connection to or from somebody is up (peer empty if not known yet).
    disconnected,  ///< A connection went down; messages to the peer fail from now on.
    refused,       ///< A handshake failed (wrong key): `peer` is the address, `frames` empty.
  };
  Kind kind = Kind::message;
  Peer peer;
  std::vector<Frame> frames;  ///< First the encoded envelope, then bulk data, uncopied where the transport can.
};

/// One endpoint: it listens for peers that connect to it, and connects to others. Owned by one thread.
/// Order of messages from one peer is kept. Bounded: send() is `overloaded` when a peer's queue is full, never blocks.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Starts to accept peers; the returned address has the real port in place of a `*`. `invalid` if the address is in
  /// use (says which).
  virtual Result<std::string> listen(const std::string& address) = 0;
  /// Begins to connect to `address`; the peer there will be called `peer` in events and send().
  virtual Result<void> connect(const Peer& peer, const std::string& address) = 0;
  virtual void disconnect(const Peer& peer) = 0;

  /// `disconnected` for an unknown or lost peer, `overloaded` at the queue's bound: then `frames` are as they were, and
  /// can be sent later.
  virtual Result<void> send(const Peer& peer, std::vector<Frame>&& frames) = 0;

  /// The next event, or nullopt if none came within `timeout` (0: do not wait).
  virtual std::optional<Event> poll(Duration timeout) = 0;
  /// A descriptor that becomes readable when poll(0) may have something (edge-triggered: call poll(0) until nullopt).
  /// -1 in simulation.
  virtual int descriptor() const = 0;
};

}  // namespace paceline::transport
