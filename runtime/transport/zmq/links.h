#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/base/instant.h"
#include "runtime/transport/zmq/sockets.h"

#include <zmq.hpp>

namespace paceline::transport {

/// A peer that connected to one of our listeners.
struct Accepted {
  Peer name;
  int fd = -1;        ///< Of its connection: how the monitor names it.
  bool gone = false;  ///< Its connection went down; what it sent before is still being read.
};

/// A greeting under a name that another connection has, and what came behind it.
struct Held {
  std::string route;
  Peer name;
  int fd = -1;
  Instant until{};
  std::vector<std::vector<Frame>> backlog;
};

/// An address that we listen at: one ROUTER. Connections are told apart by the ids that it makes up; a new connection
/// has a new one, so that nothing of an old connection is taken for a message of the new.
struct Listener {
  zmq::socket_t router;
  Monitor monitor;
  std::string address;
  std::unordered_map<std::string, Accepted> accepted{};  ///< By route.
  std::vector<Held> held{};
  std::unordered_set<int> open{};  ///< Descriptors of connections that are up, by the monitor.
  bool some_gone = false;

  /// Marks who is on a connection that went down.
  void on_closed(int fd) {
    open.erase(fd);
    for (auto& [route, peer] : accepted) {
      if (peer.fd == fd) some_gone = peer.gone = true;
    }
    std::erase_if(held, [&](const Held& h) { return h.fd == fd; });
  }
};

/// A connection that we make: one DEALER.
///
///   dialling --handshake--> shaken --welcome--> up --connection lost, farewell--> lost (drain, report, forget)
///       \------ wrong key, cut three times, refusal -----------------------> refused (likewise)
struct Dialled {
  enum class State { dialling, shaken, up, lost, refused };

  zmq::socket_t dealer;
  Monitor monitor;
  Peer name;
  std::string address;
  State state = State::dialling;
  bool welcomed = false;
  int cuts = 0;  ///< Handshakes that the other side ended without a word.
};

}  // namespace paceline::transport
