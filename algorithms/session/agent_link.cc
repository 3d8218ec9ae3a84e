#include "algorithms/session/agent_link.h"

#include <poll.h>
#include <unistd.h>

#include "runtime/base/json.h"
#include "runtime/process/fork_server.h"
#include "runtime/transport/zmq/zmq_transport.h"

namespace paceline::session {
namespace {

constexpr const char* kAgent = "agent";

}  // namespace

Result<AgentLink> AgentLink::connect(const std::string& endpoint, std::uint64_t worker, int fd_socket) {
  AgentLink link;
  link.fd_socket_ = fd_socket;
  transport::ZmqOptions options;
  options.self = "session/" + std::to_string(worker);
  auto transport = transport::ZmqTransport::create(std::move(options));
  if (!transport) return tl::unexpected(transport.error());
  link.transport_ = std::move(*transport);
  PACELINE_TRY(link.transport_->connect(kAgent, endpoint));

  wire::Message hello;
  auto body = hello.root().initHello();
  body.setRole("session");
  body.setName("session/" + std::to_string(worker));
  body.setPid(getpid());
  PACELINE_TRY(link.send(hello));
  return link;
}

Result<void> AgentLink::send(wire::Message& message) {
  // Events (welcome, connected) are of no use here, but must be taken so that their queue does not fill.
  while (transport_->poll(Duration::zero())) {
  }
  std::vector<transport::Frame> frames;
  frames.push_back(message.to_frame());
  return transport_->send(kAgent, std::move(frames));
}

Result<Answer> AgentLink::receive(int timeout_ms) {
  auto packet = process::receive_with_fds(fd_socket_, timeout_ms);
  if (!packet) return tl::unexpected(packet.error());
  Answer answer;
  answer.fds = std::move(packet->fds);
  answer.body = parse_json(packet->bytes);
  const bool failed = answer.body.is_object() && answer.body.contains("error");
  if (!answer.body.is_object() || failed) {
    for (int fd : answer.fds) close(fd);
    return failed ? fail(ErrorKind::invalid, answer.body.value("error", std::string("unknown error")))
                  : fail(ErrorKind::internal, "the agent sent an answer that is no JSON object");
  }
  return answer;
}

Result<void> AgentLink::send_descriptor(const nlohmann::json& body, int fd) {
  return process::send_with_fds(fd_socket_, json_text(body), {fd});
}

bool AgentLink::agent_is_there() const {
  pollfd p{fd_socket_, 0, 0};
  return ::poll(&p, 1, 0) == 0 || (p.revents & (POLLHUP | POLLERR)) == 0;
}

}  // namespace paceline::session
