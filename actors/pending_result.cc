#include "actors/pending_result.h"

#include <array>
#include <condition_variable>
#include <cstdint>
#include <utility>

namespace paceline::actors {
namespace {

thread_local WaitObserver* observer = nullptr;

/// What guards a result. Another one may have the same: who waits looks whether its own is there.
struct Guard {
  std::mutex mutex;
  std::condition_variable arrived;
};

Guard& guard_of(const PendingResult* result) {
  static auto& guards = *new std::array<Guard, 64>;  // Results may arrive while the process ends.
  return guards[reinterpret_cast<std::uintptr_t>(result) / sizeof(PendingResult) % guards.size()];
}

}  // namespace

void observe_waits(WaitObserver* given) { observer = given; }

bool PendingResult::ready() const {
  std::lock_guard lock(guard_of(this).mutex);
  return value_ != nullptr;
}

bool PendingResult::wait_for(Duration timeout) const {
  std::unique_lock lock(guard_of(this).mutex);
  return wait(lock, timeout);
}

const Result<Bytes>& PendingResult::wait() const {
  std::unique_lock lock(guard_of(this).mutex);
  (void)wait(lock, std::nullopt);
  return *value_;
}

/// False: it did not arrive in time.
bool PendingResult::wait(std::unique_lock<std::mutex>& lock, std::optional<Duration> timeout) const {
  const auto there = [this] { return value_ != nullptr; };
  const auto wait_on = [&](std::optional<Duration> at_most) {
    auto& arrived = guard_of(this).arrived;
    if (at_most) return arrived.wait_for(lock, *at_most, there);
    arrived.wait(lock, there);
    return true;
  };
  WaitObserver* const told = observer;
  if (told == nullptr || (timeout && *timeout <= WaitObserver::kLongWait)) return wait_on(timeout);
  if (wait_on(WaitObserver::kLongWait)) return true;
  lock.unlock();
  told->waits(timeout ? TaskId{} : task_);
  lock.lock();
  const bool came = wait_on(timeout ? std::optional(*timeout - WaitObserver::kLongWait) : std::nullopt);
  lock.unlock();
  told->goes_on();
  lock.lock();
  return came;
}

void PendingResult::when_ready(std::function<void()> then) {
  {
    std::lock_guard lock(guard_of(this).mutex);
    if (!value_) {
      if (!then_) then_ = std::make_unique<std::vector<std::function<void()>>>();
      then_->push_back(std::move(then));
      return;
    }
  }
  then();
}

void PendingResult::complete(Result<Bytes> value) {
  std::unique_ptr<std::vector<std::function<void()>>> then;
  std::shared_ptr<const void> held;  // Goes when the lock has: its end may do anything.
  {
    std::lock_guard lock(guard_of(this).mutex);
    if (value_) return;
    held = std::move(held_);
    value_ = std::make_unique<const Result<Bytes>>(std::move(value));
    then = std::move(then_);
    guard_of(this).arrived.notify_all();
  }
  if (then)
    for (auto& run : *then) run();
}

void PendingResult::hold(std::shared_ptr<const void> what) {
  std::lock_guard lock(guard_of(this).mutex);
  if (!value_) held_ = std::move(what);
}

}  // namespace paceline::actors
