#include "actors/call_windows.h"

#include <algorithm>
#include <utility>

namespace paceline::actors {

void CallWindows::add(ActorId actor, TaskId task, transport::Frame call) {
  kept_bytes_ += call.size();
  windows_[actor].kept.push_back({task, std::move(call)});
}

bool CallWindows::fits(const Window& window, std::size_t bytes) const {
  return window.calls == 0 || (window.calls < options_.calls && window.bytes + bytes <= options_.bytes);
}

std::optional<CallWindows::Leaving> CallWindows::next(ActorId actor) {
  const auto found = windows_.find(actor);
  if (found == windows_.end() || found->second.kept.empty() || found->second.held) return std::nullopt;
  Window& window = found->second;
  Kept& kept = window.kept.front();
  const std::size_t bytes = kept.call.size();
  const Way way = window.line && bytes <= options_.line_bytes ? Way::line : Way::agent;
  if (!fits(window, bytes) || (window.calls > 0 && way != window.way)) return std::nullopt;
  Leaving leaving{std::move(kept.call), way, kept.task, kept.resent};
  window.kept.pop_front();
  kept_bytes_ -= bytes;
  window.way = way;
  window.bytes += bytes;
  ++window.calls;
  return leaving;
}

void CallWindows::put_back(ActorId actor, Leaving leaving) {
  Window& window = windows_[actor];
  --window.calls;
  window.bytes -= leaving.call.size();
  kept_bytes_ += leaving.call.size();
  window.kept.push_front({leaving.task, std::move(leaving.call), leaving.resent});
}

void CallWindows::on_sent(ActorId actor, Leaving leaving) {
  Window& window = windows_[actor];
  if (window.rule) window.sent.add({leaving.task, std::move(leaving.call), leaving.resent});
}

void CallWindows::set_rule(ActorId actor, RestartRule rule) { windows_[actor].rule = rule; }

void CallWindows::take_back(Window& window, std::vector<SentCalls<transport::Frame>::Sent> again) {
  for (auto sent = again.rbegin(); sent != again.rend(); ++sent) {
    --window.calls;
    window.bytes -= std::min(window.bytes, sent->call.size());
    kept_bytes_ += sent->call.size();
    window.kept.push_front({sent->task, std::move(sent->call), sent->resent});
  }
}

void CallWindows::on_line_lost(ActorId actor, std::size_t untaken) {
  Window& window = windows_[actor];
  window.line = false;
  window.held = true;
  take_back(window, window.sent.take_untaken(untaken));
}

std::vector<TaskId> CallWindows::on_restart(ActorId actor) {
  Window& window = windows_[actor];
  window.held = false;
  auto outcome = window.sent.on_death(window.rule.value_or(RestartRule{}));
  take_back(window, std::move(outcome.again));
  return std::move(outcome.failed);
}

bool CallWindows::drop(ActorId actor, TaskId task) {
  const auto window = windows_.find(actor);
  if (window == windows_.end()) return false;
  auto& kept = window->second.kept;
  const auto call = std::find_if(kept.begin(), kept.end(), [task](const Kept& one) { return one.task == task; });
  if (call == kept.end()) return false;
  kept_bytes_ -= call->call.size();
  kept.erase(call);
  return true;
}

void CallWindows::on_result(ActorId actor, TaskId task, std::size_t bytes) {
  const auto found = windows_.find(actor);
  if (found == windows_.end()) return;
  Window& window = found->second;
  (void)window.sent.remove(task);
  for (auto kept = window.kept.begin(); kept != window.kept.end() && kept->resent > 0; ++kept) {
    if (kept->task != task) continue;  // The dead process did answer it.
    kept_bytes_ -= kept->call.size();
    window.kept.erase(kept);
    return;
  }
  window.calls -= std::min<std::size_t>(window.calls, 1);
  window.bytes -= std::min(window.bytes, bytes);
  if (window.calls == 0 && window.kept.empty() && !window.line && !window.held) windows_.erase(found);
}

void CallWindows::set_line(ActorId actor, bool open) { windows_[actor].line = open; }

bool CallWindows::on_line(ActorId actor) const {
  const auto found = windows_.find(actor);
  return found != windows_.end() && found->second.calls > 0 && found->second.way == Way::line;
}

void CallWindows::forget(ActorId actor) {
  const auto found = windows_.find(actor);
  if (found == windows_.end()) return;
  for (const auto& kept : found->second.kept) kept_bytes_ -= kept.call.size();
  windows_.erase(found);
}

void CallWindows::forget_all() {
  windows_.clear();
  kept_bytes_ = 0;
}

}  // namespace paceline::actors
