#include "actors/gathering.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <thread>

#include "actors/causes.h"
#include "runtime/base/check.h"
#include "runtime/base/steady_now.h"

namespace paceline::actors {
namespace {

/// What is left of a time, from its making on.
class TimeLeft {
 public:
  explicit TimeLeft(std::optional<Duration> timeout) : timeout_(timeout) {
    if (timeout_) timeout_ = std::min(*timeout_, ObservedWait::kLongest);
    if (timeout_) begin_ = steady_now();
  }
  std::optional<Duration> now() const {
    if (!timeout_) return std::nullopt;
    return std::max(*timeout_ - (steady_now() - begin_), Duration::zero());
  }

 private:
  std::optional<Duration> timeout_;
  Instant begin_{};
};

std::string text_of(Duration time) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, static_cast<float>(seconds(time))).ptr) + " s";
}

}  // namespace

Gathering::Gathering(std::size_t places) : waiters_(places), results_(places) {
  for (Waiter& waiter : waiters_) waiter.gathering = this;
  there_.reserve(places);
}

Gathering::~Gathering() {
  for (std::size_t place = 0; place < results_.size(); ++place)
    if (results_[place] != nullptr) results_[place]->withdraw(waiters_[place]);
}

void Gathering::add(std::size_t place, const PendingResult& result) {
  PACELINE_CHECK(results_.at(place) == nullptr, "a place holds one result");
  results_[place] = &result;
  result.add(waiters_[place]);
}

void Gathering::on_arrival(const Waiter& waiter) {
  std::lock_guard lock(mutex_);
  there_.push_back(static_cast<std::size_t>(&waiter - waiters_.data()));
  if (there_.size() == wanted_) arrived_.notify_one();
}

bool Gathering::wait(std::size_t count, std::optional<Duration> timeout, TaskId task) {
  refuse_in_copy();
  ObservedWait observed;
  std::unique_lock lock(mutex_);
  wanted_ = count;
  return observed.wait(lock, arrived_, timeout, task, [&] { return there_.size() >= count; });
}

std::vector<std::size_t> Gathering::take() {
  std::vector<std::size_t> places;
  {
    std::lock_guard lock(mutex_);
    places = there_;
    there_.clear();  // It keeps its room: on_arrival never allocates.
  }
  for (const std::size_t place : places) results_[place] = nullptr;
  return places;
}

bool wait_for_some(std::span<const PendingResultPtr> results, std::size_t count, std::optional<Duration> timeout) {
  if (timeout && *timeout <= Duration::zero()) return false;  // The caller has looked.
  if (count < results.size()) std::this_thread::yield();  // Results come in batches, and to be told of them costs more.
  std::vector<const PendingResult*> missing;
  missing.reserve(results.size());
  for (const auto& result : results)
    if (!result->ready()) missing.push_back(result.get());
  const std::size_t there = results.size() - missing.size();
  if (count <= there) return true;
  if (count == results.size()) return wait_for_all(results, timeout) == count;  // Says which one it cannot do without.
  Gathering gathering(missing.size());
  for (std::size_t i = 0; i < missing.size(); ++i) gathering.add(i, *missing[i]);
  return gathering.wait(count - there, timeout, TaskId{});
}

std::size_t wait_for_all(std::span<const PendingResultPtr> results, std::optional<Duration> timeout) {
  const TimeLeft left(timeout);
  ObservedWait observed;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]->ready() && !results[i]->wait(observed, left.now())) return i;
  }
  return results.size();
}

Error not_there(const PendingResult& result, Duration timeout) {
  const std::string what = result.actor().value != 0
                               ? "call " + to_string(result.task()) + " of actor " + to_string(result.actor())
                               : "task " + to_string(result.task());
  return {ErrorKind::timed_out, what + " has had no result for " + text_of(timeout) +
                                    ": it goes on, get() may be called again, or cancel() ends it"};
}

Error too_late(const PendingResult& result, const std::string& name, Duration timeout) {
  const auto what = name.empty() ? "task " + to_string(result.task()) : task_called(name);
  const auto why = "was not over in " + text_of(timeout) + ", its timeout";
  return began({ErrorKind::timed_out, what + " " + why}, {}, what, "it " + why);
}

}  // namespace paceline::actors
