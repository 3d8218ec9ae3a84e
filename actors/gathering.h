#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "actors/pending_result.h"

namespace paceline::actors {

/// Several results that one thread waits for at once. It is told of each that arrives, and withdraws from the others
/// when it goes: however often a result is waited for, it knows those that wait now. Owned by the thread that waits.
class Gathering {
 public:
  /// At most `places` results at one time.
  explicit Gathering(std::size_t places);
  ~Gathering();
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  /// `result` has to live until it is taken, or as long as this. The place has to be free.
  void add(std::size_t place, const PendingResult& result);
  /// Blocks until `count` of those that were added have arrived and are not taken yet; false after `timeout`. `task`:
  /// one without which the thread cannot go on; 0: none is.
  bool wait(std::size_t count, std::optional<Duration> timeout, TaskId task);
  /// The places of those that have arrived, in the order in which they did: they are free.
  std::vector<std::size_t> take();

  /// For PendingResult, within its lock.
  void on_arrival(const Waiter& waiter);

 private:
  std::vector<Waiter> waiters_;                ///< By place.
  std::vector<const PendingResult*> results_;  ///< The same; nullptr: free.
  std::mutex mutex_;                           ///< Taken within results' locks. Guards what follows.
  std::condition_variable arrived_;
  std::vector<std::size_t> there_;
  std::size_t wanted_ = 0;  ///< By the thread that waits.
};

/// Blocks until `count` of `results` are there; false after `timeout`. None may be empty, `count` is at most their
/// number; the caller has looked whether they are there already.
bool wait_for_some(std::span<const PendingResultPtr> results, std::size_t count, std::optional<Duration> timeout);

/// Each in turn, with one deadline for all: the index of the first one that was not there in time, or their number.
std::size_t wait_for_all(std::span<const PendingResultPtr> results, std::optional<Duration> timeout);

/// What is said where a result did not arrive in time.
Error not_there(const PendingResult& result, Duration timeout);
/// What is said of a task, of this name if it has one, that was not over in the time that it had.
Error too_late(const PendingResult& result, const std::string& name, Duration timeout);

}  // namespace paceline::actors
