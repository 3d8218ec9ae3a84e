#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "runtime/base/instant.h"
#include "runtime/base/result.h"

namespace paceline {

/// Waits on descriptors for a process's control thread: one thread, no timers of its own (the caller passes its next
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
  /// Whether the callback of a watched descriptor is also called while it takes more to be written.
  void watch_room(int fd, bool wanted);
  /// Safe inside a callback, also for the descriptor being called.
  void forget(int fd);
  /// Waits until something is readable or `timeout` has passed (negative: for ever), and calls what is ready. What a
  /// callback throws ends that callback only, and is told to `on_error`'s listener, or written to standard error.
  Result<void> run_once(Duration timeout);
  /// For another loop: readable while run_once() would call something.
  int descriptor() const { return epoll_; }
  void on_error(std::function<void(const Error&)> told) { on_error_ = std::move(told); }
  /// The next run_once() does not wait and calls this descriptor's callback, readable or not, after those of all that
  /// are: for a callback that has had its share of a turn and leaves something.
  void call_again(int fd) { again_.insert(fd); }

  /// How long the thread stood at one thing, while everybody else waited: all callbacks of one run_once(), or one
  /// turn(). Each is the longest, and they need not be of the same turn.
  struct Turns {
    Duration wall{};
    Duration processor{};  ///< Of the thread.
  };
  /// Since the last call.
  Turns take_longest_turns() { return std::exchange(longest_, {}); }
  /// Something that the thread does between two run_once(), measured like these.
  void turn(const std::function<void()>& what);

 private:
  explicit EventLoop(int epoll) : epoll_(epoll) {}
  void call(int fd);

  int epoll_ = -1;
  std::map<int, std::shared_ptr<std::function<void()>>> watched_;
  std::set<int> again_;
  std::function<void(const Error&)> on_error_;
  Turns longest_;
};

}  // namespace paceline
