#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/instant.h"
#include "runtime/base/piece.h"
#include "runtime/base/result.h"

namespace paceline::transport {

/// Name under which a peer is known to an endpoint ("agent/1", "worker/4294967298"); at most 255 bytes.
using Peer = std::string;
using Frame = std::vector<std::byte>;

using paceline::Piece;

/// Frames as pieces that keep them.
std::vector<Piece> pieces_of(const std::shared_ptr<const std::vector<Frame>>& frames);

/// What poll() reports.
struct Event {
  enum class Kind {
    message,       ///< `frames` from `peer`.
    connected,     ///< A connection to or from somebody is up (peer empty if not known yet).
    disconnected,  ///< A connection went down; messages to the peer fail from now on.
    refused,       ///< A handshake failed (wrong key): `peer` is the address, `frames` empty.
    contested,     ///< Somebody greets under the name of `peer`, which is connected. Only below links.
  };
  Kind kind = Kind::message;
  Peer peer;
  std::vector<Frame> frames;    ///< First the encoded envelope, then bulk data, uncopied where the transport can.
  std::vector<Piece> pieces{};  ///< Below links: the frames behind the first, in memory of the transport's.
  std::string cause{};          ///< Why it is `disconnected`, where that is known: one line.
  bool is_silent = false;       ///< `disconnected`, but its process may be there, and come back as it was.
};

/// Whether a process listens at an address.
enum class Reach { unknown, listens, refuses };

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

  /// The same with bytes that stay their keepers': `head` is the first frame. Here they are copied.
  virtual Result<void> send_pieces(const Peer& peer, Frame&& head, std::vector<Piece>&& pieces);

  /// The next event, or nullopt if none came within `timeout` (0: do not wait).
  virtual std::optional<Event> poll(Duration timeout) = 0;
  /// A descriptor that becomes readable when poll(0) may have something (edge-triggered: call poll(0) until nullopt).
  /// -1 in simulation.
  virtual int descriptor() const = 0;

  /// When poll() has to be called although descriptor() is silent; nullopt: never. For transports with timers.
  virtual std::optional<Instant> next_deadline() const { return std::nullopt; }
  /// What the owner does needs this peer: that it is silent is to be noticed although nothing is sent to it.
  virtual void depends_on(const Peer& /*peer*/, bool /*depends*/) {}
  /// Never waits: `unknown` means ask again in some milliseconds, or that this transport cannot tell.
  virtual Reach reach(const std::string& /*address*/) { return Reach::unknown; }
};

}  // namespace paceline::transport
