#include "actors/pending_result.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <utility>

#include "actors/gathering.h"
#include "actors/task_error.h"
#include "runtime/base/steady_now.h"
#include "runtime/process/this_process.h"

namespace paceline::actors {
namespace {

thread_local WaitObserver* observer = nullptr;
std::atomic<ResultLooker*> looker{nullptr};
std::atomic<pid_t> process_of_looker{0};

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
WaitObserver* wait_observer() { return observer; }
void set_result_looker(ResultLooker* given) {
  process_of_looker = process::this_process();
  looker = given;
}

Sleeping::Sleeping() : looker_(is_copy() ? nullptr : looker.load(std::memory_order_acquire)) {
  if (looker_ != nullptr) looker_->sleeps(true);
}
Sleeping::~Sleeping() {
  if (looker_ != nullptr) looker_->sleeps(false);
}

bool is_copy() {
  return looker.load(std::memory_order_relaxed) != nullptr && process_of_looker != process::this_process();
}

void refuse_in_copy() {
  if (!is_copy()) return;
  throw TaskError({ErrorKind::invalid,
                   "process " + std::to_string(process::this_process()) + " is a copy that fork() made of process " +
                       std::to_string(process_of_looker) +
                       ", whose tasks, actors and results are not for it: let it start a program (exec), or end"});
}

bool PendingResult::wait_for(Duration timeout) const {
  ObservedWait observed;
  return wait(observed, timeout);
}

const Result<Bytes>& PendingResult::wait() const {
  ObservedWait observed;
  (void)wait(observed, std::nullopt);
  return *value_.load(std::memory_order_acquire);
}

bool PendingResult::wait(ObservedWait& observed, std::optional<Duration> timeout) const {
  if (ready()) return true;
  refuse_in_copy();
  auto* const looks = looker.load(std::memory_order_acquire);
  if (looks != nullptr && (!timeout || *timeout >= ResultLooker::kTime)) {
    const Instant begin = timeout ? steady_now() : Instant();
    if (looks->look_for(*this)) return true;
    if (timeout) timeout = std::max(*timeout - (steady_now() - begin), Duration::zero());
  }
  Guard& guard = guard_of(this);
  std::unique_lock lock(guard.mutex);
  return observed.wait(lock, guard.arrived, timeout, task_, [this] { return ready(); });
}

void PendingResult::when_ready(std::function<void()> then) {
  {
    std::lock_guard lock(guard_of(this).mutex);
    if (!ready()) {
      if (!then_) then_ = std::make_unique<std::vector<std::function<void()>>>();
      then_->push_back(std::move(then));
      return;
    }
  }
  then();
}

bool PendingResult::complete(Result<Bytes> value) {
  std::unique_ptr<std::vector<std::function<void()>>> then;
  // What is held goes without the lock, since its end may do anything, and before the result shows: whoever has the
  // result may use the name of an actor that has been let go.
  std::shared_ptr<const void> held;
  {
    std::lock_guard lock(guard_of(this).mutex);
    held = std::move(held_);
  }
  held.reset();
  {
    std::lock_guard lock(guard_of(this).mutex);
    if (ready()) return false;
    held = std::move(held_);
    value_.store(new Result<Bytes>(std::move(value)), std::memory_order_release);
    then = std::move(then_);
    while (Waiter* const waiter = waiters_) {
      waiters_ = waiter->next;
      if (waiters_ != nullptr) waiters_->link = &waiters_;
      waiter->link = nullptr;
      waiter->gathering->on_arrival(*waiter);
    }
    guard_of(this).arrived.notify_all();
  }
  if (auto* const looks = looker.load(std::memory_order_acquire); looks != nullptr) looks->wake();
  if (then)
    for (auto& run : *then) run();
  return true;
}

void PendingResult::hold(std::shared_ptr<const void> what) {
  std::lock_guard lock(guard_of(this).mutex);
  if (!ready()) held_ = std::move(what);
}

void PendingResult::add(Waiter& waiter) const {
  std::lock_guard lock(guard_of(this).mutex);
  if (ready()) return waiter.gathering->on_arrival(waiter);
  waiter.next = waiters_;
  waiter.link = &waiters_;
  if (waiters_ != nullptr) waiters_->link = &waiter.next;
  waiters_ = &waiter;
}

void PendingResult::withdraw(Waiter& waiter) const {
  std::lock_guard lock(guard_of(this).mutex);
  if (waiter.link == nullptr) return;
  *waiter.link = waiter.next;
  if (waiter.next != nullptr) waiter.next->link = waiter.link;
  waiter.link = nullptr;
}

}  // namespace paceline::actors
