#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/channel/channel.h"
#include "runtime/process/descriptor_channel.h"
#include "runtime/wire/codec.h"

namespace paceline::session {

/// Of the agent: with the descriptors that it speaks of.
struct Answer {
  wire::Received message;
  std::vector<process::Fd> fds;

  /// What of it is of this kind, as `read` says. `internal`: it is another one, or damaged.
  template <class Read>
  Result<void> as(wire::Envelope::Which kind, const Read& read) const;
};
tl::unexpected<Error> no_answer(const std::string& why);

template <class Read>
Result<void> Answer::as(wire::Envelope::Which kind, const Read& read) const {
  const auto done = message.visit([&](const wire::Envelope::Reader& root) -> Result<void> {
    if (root.which() != kind) return fail(ErrorKind::invalid, "it is of another kind");
    read(root);
    return {};
  });
  return done ? done : no_answer(done.error().text);
}

/// The session's way to its agent: messages over a channel, which the agent makes when it is asked over the worker's
/// Unix socket; answers that carry descriptors over that socket. With PACELINE_CHANNELS=zmq in the environment the
/// channel is a connection over ZeroMQ. Owned by the compute thread.
class AgentLink {
 public:
  /// Connects and says hello.
  static Result<AgentLink> connect(const std::string& endpoint, std::uint64_t worker,
                                   process::DescriptorChannel& agent);

  /// Waits for room as long as the agent is there.
  Result<void> send(wire::Message& message);
  /// Of a message that asks for something over this link.
  process::DescriptorChannel::Request begin() { return agent_.begin(); }
  /// As the channel's, for an answer that says something.
  Result<Answer> wait(const process::DescriptorChannel::Request& request, Duration timeout);
  /// Gives the agent a descriptor.
  Result<void> give(process::DescriptorMessage::Kind kind, wire::Message& message, process::BorrowedFd fd);
  /// False once the agent has hung up.
  bool agent_is_there() const { return agent_.agent_is_there(); }

 private:
  explicit AgentLink(process::DescriptorChannel& agent) : agent_(agent) {}
  Result<void> open_rings();
  Result<void> open_zmq(const std::string& endpoint, std::uint64_t worker);

  process::DescriptorChannel& agent_;
  std::unique_ptr<channel::Channel> channel_;
};

}  // namespace paceline::session
