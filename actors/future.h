#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/gathering.h"
#include "actors/pending_result.h"
#include "actors/serialise.h"
#include "actors/task_error.h"

namespace paceline {

/// What a call or a task will give. Copies share one result; dropping the last one lets the cluster forget it. Any
/// thread.
template <class T>
class Future {
 public:
  using value_type = T;

  Future() = default;
  explicit Future(actors::PendingResultPtr pending) : pending_(std::move(pending)) {}

  /// Blocks until the result is there; each call decodes a copy. Throws TaskError with what the task threw, and where.
  T get() const { return decoded(checked().wait()); }
  /// The same for at most `timeout`, then throws TaskError of kind `timed_out`. The task goes on, and the future may be
  /// asked again.
  T get(Duration timeout) const {
    if (!checked().wait_for(timeout)) throw TaskError(actors::not_there(*pending_, timeout));
    return decoded(pending_->wait());
  }
  /// What `function` makes of the result, when that is there: a future of its own. `function` runs in this process, on
  /// a thread for such functions, one after the other (one that waits keeps no other one up), and may hold whatever it
  /// likes. A future or a Result that it gives stands for its value. An error of this future is the other one's, too,
  /// and `function` is not run; what it throws comes from that one's get() as TaskError. When main ends, those that run
  /// are waited for, and the others are not run.
  template <class F>
  auto then(F&& function) const;
  /// Whether get() would not block.
  bool ready() const { return checked().ready(); }
  /// False if it is not there after `timeout`.
  bool wait_for(Duration timeout) const { return checked().wait_for(timeout); }
  /// False for a default-constructed future.
  bool valid() const { return pending_ != nullptr; }

  const actors::PendingResultPtr& pending() const { return pending_; }

 private:
  static T decoded(const Result<Bytes>& bytes) {
    if (!bytes) throw TaskError(bytes.error());
    if constexpr (!std::is_void_v<T>) {
      auto value = actors::from_bytes<T>(*bytes, "a result");
      if (!value) throw TaskError(value.error());
      return *std::move(value);
    }
  }
  const actors::PendingResult& checked() const {
    if (!pending_) throw TaskError({ErrorKind::invalid, "an empty future was asked for its result"});
    return *pending_;
  }
  actors::PendingResultPtr pending_;
};

}  // namespace paceline
