#include "actors/worker/state_keeper.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace paceline::worker {
namespace {

using process::DescriptorChannel;

constexpr Duration kPatience = std::chrono::seconds(30);

Result<process::Fd> ask(DescriptorChannel& agent, DescriptorChannel::Kind what,
                        const std::vector<process::BorrowedFd>& fds) {
  auto answer = agent.ask(what, fds, kPatience);
  if (!answer) return fail(answer.error().kind, "durable state: the agent does not keep it: " + answer.error().text);
  return answer->fds.empty() ? process::Fd() : std::move(answer->fds.front());
}

}  // namespace

StateKeeper keep_at_agent(DescriptorChannel& agent) {
  StateKeeper keeper;
  keeper.find = [&agent] { return ask(agent, DescriptorChannel::Kind::find_state, {}); };
  keeper.keep = [&agent](process::BorrowedFd fd) -> Result<void> {
    const auto kept = ask(agent, DescriptorChannel::Kind::keep_state, {fd});
    if (!kept) return tl::unexpected(kept.error());
    return {};
  };
  return keeper;
}

}  // namespace paceline::worker
