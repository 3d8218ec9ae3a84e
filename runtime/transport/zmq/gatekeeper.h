#pragma once

#include <string>
#include <string_view>

#include <zmq.hpp>

namespace paceline::transport {

/// Decides who may complete a CURVE handshake: holders of the cluster's client key, nobody else (CURVE alone admits any
/// client that knows the server's public key). ZeroMQ asks over its ZAP protocol; bind it before any listener.
/// Owned by the transport's thread, which serves it between messages.
class Gatekeeper {
 public:
  static constexpr std::string_view kDomain = "paceline";

  /// `client_public_key` in Z85. Throws zmq::error_t.
  Gatekeeper(zmq::context_t& context, const std::string& client_public_key);
  /// Answers one question; false if there is none.
  bool serve();
  int fd() const;

 private:
  zmq::socket_t replier_;
  std::string admitted_;  // The key as 32 bytes.
};

}  // namespace paceline::transport
