#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "runtime/base/instant.h"
#include "runtime/base/result.h"

namespace paceline {

/// Waits on descriptors for a daemon's control thread: one thread, no timers of its own (the caller passes its next
/// deadline), sleeps in the kernel while nothing happens.
class EventLoop {
 public:
  static Result<EventLoop> create();
  EventLoop(EventLoop&&) noexcept;
  EventLoop& operator=(EventLoop&&) noexcept;
  ~EventLoop();

  /// Calls `ready` from run_once() whenever `fd` is readable or hung up (level-triggered). The descriptor stays the
  /// caller's.
  Result<void> watch(int fd, std::function<void()> ready);
  /// Safe inside a callback, also for the descriptor being called.
  void forget(int fd);
  /// Waits until something is readable or `timeout` has passed (negative: for ever), and calls what is ready. What a
  /// callback throws ends that callback only, and is told to `on_error`'s listener, or written to standard error.
  Result<void> run_once(Duration timeout);
  /// For another loop: readable while run_once() would call something.
  int descriptor() const { return epoll_; }
  void on_error(std::function<void(const Error&)> told) { on_error_ = std::move(told); }

 private:
  explicit EventLoop(int epoll) : epoll_(epoll) {}
  int epoll_ = -1;
  std::map<int, std::shared_ptr<std::function<void()>>> watched_;
  std::function<void(const Error&)> on_error_;
};

}  // namespace paceline
