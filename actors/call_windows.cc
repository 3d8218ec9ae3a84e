#include "actors/call_windows.h"

#include <algorithm>
#include <utility>

namespace paceline::actors {

std::optional<transport::Frame> CallWindows::offer(ActorId actor, transport::Frame call) {
  Window& window = windows_[actor];
  const std::size_t bytes = call.size();
  if (!window.kept.empty() || !fits(window, bytes)) {
    kept_bytes_ += bytes;
    window.kept.push_back(std::move(call));
    return std::nullopt;
  }
  ++window.calls;
  window.bytes += bytes;
  return call;
}

std::vector<transport::Frame> CallWindows::on_result(ActorId actor, std::size_t bytes) {
  std::vector<transport::Frame> released;
  const auto found = windows_.find(actor);
  if (found == windows_.end()) return released;
  Window& window = found->second;
  window.calls -= std::min<std::size_t>(window.calls, 1);
  window.bytes -= std::min(window.bytes, bytes);
  while (!window.kept.empty() && fits(window, window.kept.front().size())) {
    released.push_back(std::move(window.kept.front()));
    window.kept.pop_front();
    kept_bytes_ -= released.back().size();
    window.bytes += released.back().size();
    ++window.calls;
  }
  if (window.calls == 0) windows_.erase(found);
  return released;
}

void CallWindows::forget(ActorId actor) {
  const auto found = windows_.find(actor);
  if (found == windows_.end()) return;
  for (const auto& call : found->second.kept) kept_bytes_ -= call.size();
  windows_.erase(found);
}

void CallWindows::forget_all() {
  windows_.clear();
  kept_bytes_ = 0;
}

}  // namespace paceline::actors
