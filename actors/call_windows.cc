#include "actors/call_windows.h"

#include <algorithm>
#include <utility>

namespace paceline::actors {

void CallWindows::add(ActorId actor, transport::Frame call) {
  kept_bytes_ += call.size();
  windows_[actor].kept.push_back(std::move(call));
}

bool CallWindows::fits(const Window& window, std::size_t bytes) const {
  return window.calls == 0 || (window.calls < options_.calls && window.bytes + bytes <= options_.bytes);
}

std::optional<CallWindows::Leaving> CallWindows::next(ActorId actor) {
  const auto found = windows_.find(actor);
  if (found == windows_.end() || found->second.kept.empty()) return std::nullopt;
  Window& window = found->second;
  const std::size_t bytes = window.kept.front().size();
  const Way way = window.line && bytes <= options_.line_bytes ? Way::line : Way::agent;
  if (!fits(window, bytes) || (window.calls > 0 && way != window.way)) return std::nullopt;
  Leaving leaving{std::move(window.kept.front()), way};
  window.kept.pop_front();
  kept_bytes_ -= bytes;
  window.way = way;
  window.bytes += bytes;
  ++window.calls;
  return leaving;
}

void CallWindows::put_back(ActorId actor, transport::Frame call) {
  Window& window = windows_[actor];
  --window.calls;
  window.bytes -= call.size();
  kept_bytes_ += call.size();
  window.kept.push_front(std::move(call));
}

void CallWindows::on_result(ActorId actor, std::size_t bytes) {
  const auto found = windows_.find(actor);
  if (found == windows_.end()) return;
  Window& window = found->second;
  window.calls -= std::min<std::size_t>(window.calls, 1);
  window.bytes -= std::min(window.bytes, bytes);
  if (window.calls == 0 && window.kept.empty() && !window.line) windows_.erase(found);
}

void CallWindows::set_line(ActorId actor, bool open) { windows_[actor].line = open; }

bool CallWindows::on_line(ActorId actor) const {
  const auto found = windows_.find(actor);
  return found != windows_.end() && found->second.calls > 0 && found->second.way == Way::line;
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
