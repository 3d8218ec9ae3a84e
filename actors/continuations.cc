#include "actors/continuations.h"

#include <utility>

#include "actors/wait_observer.h"

namespace paceline::actors {

/// A continuation that waits lets the next one run.
class Continuations::Observer final : public WaitObserver {
 public:
  explicit Observer(Continuations& continuations) : continuations_(continuations) { observe_waits(this); }
  ~Observer() override { observe_waits(nullptr); }
  void waits(TaskId) override {
    if (std::exchange(waits_, true)) return;
    std::lock_guard lock(continuations_.mutex_);
    --continuations_.running_;
    continuations_.wake();
  }
  void goes_on() override {
    waits_ = false;
    std::lock_guard lock(continuations_.mutex_);
    ++continuations_.running_;
  }

 private:
  Continuations& continuations_;
  bool waits_ = false;
};

void Continuations::post(Continuation continuation) {
  {
    std::lock_guard lock(mutex_);
    if (!closed_) {
      queue_.push_back(std::move(continuation));
      return wake();
    }
  }
  continuation(false);
}

/// Somebody takes what is queued. Under the lock.
void Continuations::wake() {
  if (queue_.empty() || running_ > 0 || closed_) return;
  if (idle_ > 0) {
    posted_.notify_one();
  } else if (threads_.size() < kThreadsMax) {
    ++idle_;
    threads_.emplace_back([this] { run(); });
  }
}

void Continuations::run() {
  Observer observer(*this);
  std::unique_lock lock(mutex_);
  while (true) {
    posted_.wait(lock, [this] { return closed_ || (!queue_.empty() && running_ == 0); });
    --idle_;
    if (closed_) return;
    auto continuation = std::move(queue_.front());
    queue_.pop_front();
    ++running_;
    lock.unlock();
    continuation(true);
    continuation = nullptr;  // What it holds goes outside of the lock, too.
    lock.lock();
    --running_;
    ++idle_;
    wake();
  }
}

void Continuations::close() {
  std::deque<Continuation> dropped;
  std::vector<std::thread> threads;
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(queue_);
    threads.swap(threads_);
    posted_.notify_all();
  }
  for (auto& continuation : dropped) continuation(false);
  for (auto& thread : threads) thread.join();
}

std::size_t Continuations::threads() const {
  std::lock_guard lock(mutex_);
  return threads_.size();
}

Continuations& continuations() {
  static auto& those = *new Continuations;  // Futures in static variables may outlive main.
  return those;
}

}  // namespace paceline::actors
