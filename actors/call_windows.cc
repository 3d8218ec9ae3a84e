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
  if (!fits(window, bytes)) return std::nullopt;
  if (way != window.way && !may_turn(window)) {
    // Where its line has gone, or what it carried may be sent again over it, one waits for all results.
    const bool is_enough =
        window.way == Way::agent || (window.line && (!window.rule || window.rule->call_retries == 0));
    if (window.fence || !is_enough) return std::nullopt;
    Leaving fence;
    fence.way = window.way;
    fence.fence = true;
    return fence;
  }
  Leaving leaving{std::move(kept.call), way, kept.task, kept.resent};
  window.kept.pop_front();
  kept_bytes_ -= bytes;
  window.way = way;
  window.arrived = false;
  window.fence.reset();  // One that is under way is not behind this call.
  leave(window, way, bytes);
  return leaving;
}

/// Whether all that went the way of the last one has arrived.
bool CallWindows::may_turn(const Window& window) {
  return window.arrived || (window.way == Way::line ? window.by_line : window.calls - window.by_line) == 0;
}

void CallWindows::leave(Window& window, Way way, std::size_t bytes) {
  ++window.calls;
  window.by_line += way == Way::line ? 1 : 0;
  window.bytes += bytes;
}

void CallWindows::come_back(Window& window, Way way, std::size_t bytes) {
  window.calls -= std::min<std::size_t>(window.calls, 1);
  window.by_line = std::min(window.calls, window.by_line - (way == Way::line && window.by_line > 0 ? 1 : 0));
  window.bytes -= std::min(window.bytes, bytes);
}

void CallWindows::add_fence(ActorId actor, const Leaving& leaving) {
  Window& window = windows_[actor];
  window.fence = leaving.task;
  leave(window, leaving.way, leaving.call.size());
}

void CallWindows::put_back(ActorId actor, Leaving leaving) {
  Window& window = windows_[actor];
  come_back(window, leaving.way, leaving.call.size());
  if (leaving.fence) return window.fence.reset();
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
    come_back(window, Way::line, sent->call.size());
    kept_bytes_ += sent->call.size();
    window.kept.push_front({sent->task, std::move(sent->call), sent->resent});
  }
}

void CallWindows::on_line_lost(ActorId actor, std::size_t untaken) {
  Window& window = windows_[actor];
  window.line = false;
  window.held = true;
  window.way = Way::agent;  // Nothing is under way over the line any more, once this is known of each.
  window.fence.reset();
  window.arrived = false;
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

void CallWindows::on_result(ActorId actor, TaskId task, std::size_t bytes, Way way) {
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
  if (window.fence == task) {
    window.fence.reset();
    window.arrived = true;
  }
  come_back(window, way, bytes);
  if (window.calls == 0 && window.kept.empty() && !window.line && !window.held) windows_.erase(found);
}

void CallWindows::set_line(ActorId actor, bool open) { windows_[actor].line = open; }

bool CallWindows::on_line(ActorId actor) const {
  const auto found = windows_.find(actor);
  return found != windows_.end() && found->second.by_line > 0;
}

std::size_t CallWindows::under_way(ActorId actor) const {
  const auto found = windows_.find(actor);
  return found == windows_.end() ? 0 : found->second.calls;
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
