#include "runtime/transport/backlog.h"

#include <string>
#include <utility>

namespace paceline::transport {
namespace {

std::size_t bytes_of(const std::vector<Frame>& frames) {
  std::size_t bytes = 0;
  for (const Frame& frame : frames) bytes += frame.size();
  return bytes;
}

}  // namespace

Result<void> Backlog::send(const Peer& peer, std::vector<Frame>&& frames) {
  const auto behind = waiting_.find(peer);
  if (behind == waiting_.end()) {
    auto sent = transport_.send(peer, std::move(frames));
    if (sent || sent.error().kind != ErrorKind::overloaded) return sent;
  }
  const std::size_t bytes = bytes_of(frames);  // NOLINT(bugprone-use-after-move): as they were.
  Waiting& waiting = behind == waiting_.end() ? waiting_[peer] : behind->second;
  if (!waiting.messages.empty() && waiting.bytes + bytes > bytes_max_)
    return fail(ErrorKind::overloaded,
                peer + " has not read the last " + std::to_string(waiting.bytes >> 20) + " MiB that were sent to it");
  waiting.bytes += bytes;
  waiting.messages.push_back(std::move(frames));
  return {};
}

void Backlog::flush() {
  for (auto it = waiting_.begin(); it != waiting_.end();) it = flush(it->first, it->second) ? waiting_.erase(it) : ++it;
}

/// Whether nothing waits any more: it was sent, or the peer is gone and reads nothing.
bool Backlog::flush(const Peer& peer, Waiting& waiting) {
  while (!waiting.messages.empty()) {
    const std::size_t bytes = bytes_of(waiting.messages.front());
    const auto sent = transport_.send(peer, std::move(waiting.messages.front()));
    if (!sent) return sent.error().kind != ErrorKind::overloaded;
    waiting.messages.pop_front();
    waiting.bytes -= bytes;
  }
  return true;
}

}  // namespace paceline::transport
