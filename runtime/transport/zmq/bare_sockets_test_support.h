#pragma once

#include <string>

#include <zmq.hpp>

namespace paceline::test {

/// A ZeroMQ socket with a context of its own, its queues as long as ours: what benchmarks compare with.
class BareSocket {
 public:
  static BareSocket router(const std::string& address) {
    BareSocket made(zmq::socket_type::router);
    made.socket.set(zmq::sockopt::rcvhwm, 4096);
    made.socket.set(zmq::sockopt::linger, 0);
    made.socket.bind(address);
    return made;
  }
  static BareSocket dealer(const std::string& address) {
    BareSocket made(zmq::socket_type::dealer);
    made.socket.set(zmq::sockopt::sndhwm, 4096);
    made.socket.connect(address);
    return made;
  }

 private:
  explicit BareSocket(zmq::socket_type type) : socket(context_, type) {}

  zmq::context_t context_{1};

 public:
  zmq::socket_t socket;
};

}  // namespace paceline::test
