#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace paceline::actors {

/// Runs what Future::then() was given, in the order in which the results arrived, on threads of its own: one after the
/// other, but one that waits for a result keeps nobody, another thread goes on meanwhile. Threads are started when
/// there is something to run, up to kThreadsMax.
class Continuations {
 public:
  static constexpr std::size_t kThreadsMax = 256;
  /// Called once: to run, or (false) because this has been closed.
  using Continuation = std::function<void(bool)>;

  Continuations() = default;
  ~Continuations() { close(); }
  Continuations(const Continuations&) = delete;
  Continuations& operator=(const Continuations&) = delete;

  void post(Continuation continuation);
  /// Waits for those that run, and drops the others and what comes later.
  void close();

  std::size_t threads() const;

 private:
  class Observer;
  void run();
  void wake();

  mutable std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Continuation> queue_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  std::size_t running_ = 0;  ///< And not waiting.
  bool closed_ = false;
};

/// This process's.
Continuations& continuations();

}  // namespace paceline::actors
