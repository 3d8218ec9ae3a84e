#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/channel/channel.h"
#include "runtime/process/fd.h"
#include "runtime/wire/codec.h"

namespace paceline::session {

/// An answer of the agent over the Unix socket: a small JSON object with the descriptors that it speaks of.
struct Answer {
  nlohmann::json body;
  std::vector<process::Fd> fds;
};

/// The session's way to its agent: messages over a channel, which the agent makes when it is asked over the worker's
/// Unix socket; answers that carry descriptors over that socket. With PACELINE_CHANNELS=zmq in the environment the
/// channel is a connection over ZeroMQ. Owned by the compute thread.
class AgentLink {
 public:
  /// Connects and says hello.
  static Result<AgentLink> connect(const std::string& endpoint, std::uint64_t worker, process::BorrowedFd socket);

  /// Waits for room as long as the agent is there.
  Result<void> send(wire::Message& message);
  /// The next answer; `disconnected` when the agent has gone, `timed_out` after `timeout_ms`. An {"error": ...} body is
  /// that error.
  Result<Answer> receive(int timeout_ms);
  /// Sends a JSON object with a descriptor to the agent.
  Result<void> send_descriptor(const nlohmann::json& body, process::BorrowedFd fd);
  /// False once the agent has hung up.
  bool agent_is_there() const;

 private:
  explicit AgentLink(process::BorrowedFd socket) : socket_(socket) {}
  Result<void> open_rings();
  Result<void> open_zmq(const std::string& endpoint, std::uint64_t worker);

  std::unique_ptr<channel::Channel> channel_;
  process::BorrowedFd socket_;
};

}  // namespace paceline::session
