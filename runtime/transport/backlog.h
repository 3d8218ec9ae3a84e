#pragma once

#include <cstddef>
#include <deque>
#include <unordered_map>
#include <vector>

#include "runtime/transport/transport.h"

namespace paceline::transport {

/// Sends over a transport, and keeps in order what its queues have no room for: nothing is dropped that a connected
/// peer may still read. Owned by the transport's thread, which calls flush() soon again while it is not empty (queues
/// do not tell when they have room). Bound: bytes_max a peer.
class Backlog {
 public:
  explicit Backlog(Transport& transport, std::size_t bytes_max = std::size_t{256} << 20)
      : transport_(transport), bytes_max_(bytes_max) {}

  /// `disconnected` as Transport::send. `overloaded`: the peer has not read bytes_max so far, and this message is not
  /// kept either: who goes on without it has to end the connection.
  Result<void> send(const Peer& peer, std::vector<Frame>&& frames);
  /// Sends what there is room for now.
  void flush();
  bool empty() const { return waiting_.empty(); }
  /// The peer is gone.
  void forget(const Peer& peer) { waiting_.erase(peer); }

 private:
  struct Waiting {
    std::deque<std::vector<Frame>> messages;
    std::size_t bytes = 0;
  };
  bool flush(const Peer& peer, Waiting& waiting);

  Transport& transport_;
  std::size_t bytes_max_;
  std::unordered_map<Peer, Waiting> waiting_;
};

}  // namespace paceline::transport
