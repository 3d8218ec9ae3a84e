#include "algorithms/session/agent_link.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/channel/ring_channel.h"
#include "runtime/channel/zmq_channel.h"
#include "runtime/process/fd_passing.h"
#include "runtime/transport/zmq/zmq_transport.h"

namespace paceline::session {
namespace {

constexpr const char* kAgent = "agent";
constexpr int kOpenMs = 30'000;
constexpr Duration kLook = std::chrono::milliseconds(200);  // How often a sender looks whether the agent still lives.

}  // namespace

Result<AgentLink> AgentLink::connect(const std::string& endpoint, std::uint64_t worker, process::BorrowedFd socket) {
  AgentLink link(socket);
  PACELINE_TRY(channel::shares_memory() ? link.open_rings() : link.open_zmq(endpoint, worker));
  return link;
}

Result<void> AgentLink::open_rings() {
  PACELINE_TRY(process::send_with_fds(socket_, json_text(nlohmann::json{{"kind", "channel"}}), {}));
  auto answer = receive(kOpenMs);
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

Result<Answer> AgentLink::receive(int timeout_ms) {
  auto packet = process::receive_with_fds(socket_, timeout_ms);
  if (!packet) return tl::unexpected(packet.error());
  Answer answer;
  answer.fds = std::move(packet->fds);
  answer.body = parse_json(packet->bytes);
  const bool failed = answer.body.is_object() && answer.body.contains("error");
  if (!answer.body.is_object() || failed)
    return failed ? fail(ErrorKind::invalid, answer.body.value("error", std::string("unknown error")))
                  : fail(ErrorKind::internal, "the agent sent an answer that is no JSON object");
  return answer;
}

Result<void> AgentLink::send_descriptor(const nlohmann::json& body, process::BorrowedFd fd) {
  return process::send_with_fds(socket_, json_text(body), {fd});
}

bool AgentLink::agent_is_there() const {
  pollfd p{socket_.get(), 0, 0};
  return ::poll(&p, 1, 0) == 0 || (p.revents & (POLLHUP | POLLERR)) == 0;
}

}  // namespace paceline::session
