#include "actors/worker/state_keeper.h"

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/process/fd_passing.h"

namespace paceline::worker {
namespace {

constexpr int kAnswerMs = 30'000;

Result<process::Fd> ask(process::BorrowedFd agent_socket, const char* what,
                        const std::vector<process::BorrowedFd>& fds) {
  PACELINE_TRY(process::send_with_fds(agent_socket, json_text(nlohmann::json{{"kind", what}}), fds));
  auto packet = process::receive_with_fds(agent_socket, kAnswerMs);
  if (!packet) return fail(packet.error().kind, "durable state: the agent does not keep it: " + packet.error().text);
  const auto body = parse_json(packet->bytes);
  if (!body.is_object() || body.contains("error"))
    return fail(ErrorKind::invalid, "durable state: the agent does not keep it: " +
                                        (body.is_object() ? body.value("error", "") : packet->bytes));
  return packet->fds.empty() ? process::Fd() : std::move(packet->fds.front());
}

}  // namespace

StateKeeper keep_at_agent(process::BorrowedFd agent_socket) {
  StateKeeper keeper;
  keeper.find = [agent_socket] { return ask(agent_socket, "state", {}); };
  keeper.keep = [agent_socket](process::BorrowedFd fd) -> Result<void> {
    const auto kept = ask(agent_socket, "keep", {fd});
    if (!kept) return tl::unexpected(kept.error());
    return {};
  };
  return keeper;
}

}  // namespace paceline::worker
