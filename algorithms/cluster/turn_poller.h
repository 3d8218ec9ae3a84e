#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/turn_budget.h"
#include "runtime/transport/transport.h"

namespace paceline::cluster {

/// Hands on what comes over a transport, a share (TurnBudget) a turn: then others have theirs first. A simulated
/// transport has no descriptor; it is looked at every tick. Owned by the control loop.
class TurnPoller {
 public:
  struct Listener {
    std::function<void()> turn;  ///< One begins.
    std::function<void(transport::Event)> event;
  };

  TurnPoller(transport::Transport& transport, const Clock& clock, std::size_t messages_a_turn, Listener listener)
      : transport_(transport), clock_(clock), messages_a_turn_(messages_a_turn), listener_(std::move(listener)) {}

  /// From here on the loop calls poll(), and whoever owns this calls tick().
  Result<void> watch(EventLoop& loop) {
    loop_ = &loop;
    if (transport_.descriptor() < 0) return {};
    return loop.watch(transport_.descriptor(), [this] { poll(); });
  }
  void poll() {
    listener_.turn();
    for (TurnBudget budget(clock_, messages_a_turn_); budget.take();) {
      auto event = transport_.poll(Duration::zero());
      if (!event) return;
      listener_.event(*std::move(event));
    }
    transport_.descriptor() >= 0 ? loop_->call_again(transport_.descriptor()) : void(unread_ = true);
  }
  void tick(Instant now) {
    unread_ = false;
    const auto due = transport_.next_deadline();
    if (transport_.descriptor() < 0 || (due && *due <= now)) poll();
  }
  std::optional<Instant> next_deadline() const { return unread_ ? clock_.now() : transport_.next_deadline(); }

 private:
  transport::Transport& transport_;
  const Clock& clock_;
  const std::size_t messages_a_turn_;
  const Listener listener_;
  EventLoop* loop_ = nullptr;
  bool unread_ = false;  ///< There is more, and no descriptor to say so.
};

}  // namespace paceline::cluster
