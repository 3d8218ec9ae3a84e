#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "runtime/transport/transport.h"
#include "runtime/transport/zmq/keys.h"

namespace paceline::transport {

struct ZmqOptions {
  Peer self;  ///< Our name for others: 1..255 printable characters, unique among their peers.
  std::optional<ClusterKeys> keys = std::nullopt;  ///< Needed for every tcp address.
  std::size_t queue_bound = 4096;                  ///< Messages that wait for one peer, each way; then `overloaded`.
  std::int64_t frame_bytes_max = std::int64_t{1} << 30;  ///< A peer that sends a larger frame loses its connection.
  std::size_t peers_max = 4096;                          ///< Accepted peers at one time; further ones are refused.
  /// Of ours and ZeroMQ's; 12 bytes of memory each from the beginning on. A connection that is made takes two.
  int sockets_max = 65535;
  int io_threads = 1;    ///< ZeroMQ's own; they do the encryption.
  bool trusted = false;  ///< tcp without keys is allowed: whoever reaches the address is believed.
  bool links = false;    ///< Below links: frames behind the first are lent, and contested names are told.
  Duration linger = std::chrono::milliseconds(200);  ///< How long the destructor lets messages leave.
};

/// Transport over ZeroMQ: `ipc:///path` in a directory of ours with mode 0700, or `tcp://host:port` under CURVE with
/// the cluster's keys. A ROUTER each address listened at, a DEALER each connection made; both sides know the other by
/// name.
///
/// - One connection a pair of names: the endpoints agree on who connects. A name that is taken is refused, after a
/// second
///   in which its holder may turn out to be dead; after a death the same name gets in again.
/// - connect() tries until it is there, refused, or disconnect() is called; send() queues meanwhile. A connection that
/// was
///   up and went down is not mended: `disconnected` comes once, what was queued is lost, connect() again.
/// - `refused`: wrong key (both sides; at the listener `peer` is its own address), name taken, too many peers.
/// - Every message that came before a connection went down is reported before its `disconnected`.
/// - A message has 1..64 frames, the first of them not empty.
/// - descriptor(): also readable after send() and connect() where these took notice of input, so a loop that waits on
/// it
///   and then polls until nullopt misses nothing.
///
/// Does I/O, owns ZeroMQ's threads (no signals are delivered to them), costs nothing while idle. Owned by one thread.
/// Must not exist across a fork.
class ZmqTransport : public Transport {
 public:
  /// `invalid` for a bad name or bound.
  static Result<std::unique_ptr<Transport>> create(ZmqOptions options);
};

}  // namespace paceline::transport
