#include "algorithms/session/agent_link.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "runtime/channel/ring_channel.h"
#include "runtime/channel/zmq_channel.h"
#include "runtime/transport/zmq/zmq_transport.h"

namespace paceline::session {
namespace {

constexpr const char* kAgent = "agent";
constexpr Duration kOpenWithin = std::chrono::seconds(30);
constexpr Duration kLook = std::chrono::milliseconds(200);  // How often a sender looks whether the agent still lives.

}  // namespace

tl::unexpected<Error> no_answer(const std::string& why) {
  return fail(ErrorKind::internal, "the agent's answer cannot be read: " + why);
}

Result<AgentLink> AgentLink::connect(const std::string& endpoint, std::uint64_t worker,
                                     process::DescriptorChannel& agent) {
  AgentLink link(agent);
  PACELINE_TRY(channel::shares_memory() ? link.open_rings() : link.open_zmq(endpoint, worker));
  return link;
}

Result<void> AgentLink::open_rings() {
  auto answer = agent_.ask(process::DescriptorMessage::Kind::open_channel, {}, kOpenWithin);
  if (!answer) return tl::unexpected(answer.error());
  auto opened = channel::RingChannel::open(std::move(answer->fds));
  if (!opened) return tl::unexpected(opened.error());
  channel_ = *std::move(opened);
  return {};
}

Result<void> AgentLink::open_zmq(const std::string& endpoint, std::uint64_t worker) {
  transport::ZmqOptions options;
  options.self = "session/" + std::to_string(worker);
  options.sockets_max = 64;  // It connects to one agent.
  auto transport = transport::ZmqTransport::create(options);
  if (!transport) return tl::unexpected(transport.error());
  PACELINE_TRY((*transport)->connect(kAgent, endpoint));
  channel_ = std::make_unique<channel::ZmqChannel>(*std::move(transport), kAgent);

  wire::Message hello;
  auto body = hello.root().initHello();
  body.setRole("session");
  body.setName(options.self);
  body.setPid(getpid());
  return send(hello);
}

Result<void> AgentLink::send(wire::Message& message) {
  const std::array frames{message.to_frame()};
  while (true) {
    auto sent = channel_->send(frames, kLook);
    if (sent || sent.error().kind != ErrorKind::overloaded) return sent;
    if (!agent_is_there()) return fail(ErrorKind::disconnected, "the agent is gone");
  }
}

Result<Answer> AgentLink::wait(const process::DescriptorChannel::Request& request, Duration timeout) {
  auto came = agent_.wait(request, timeout);
  if (!came) return tl::unexpected(came.error());
  auto message = wire::Received::parse_packet(came->body);
  if (!message) return no_answer(message.error().text);
  return Answer{*std::move(message), std::move(came->fds)};
}

Result<void> AgentLink::give(process::DescriptorMessage::Kind kind, wire::Message& message, process::BorrowedFd fd) {
  return agent_.tell(kind, message.to_packet(), {fd});
}

}  // namespace paceline::session
