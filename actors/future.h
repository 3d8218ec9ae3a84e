#pragma once

#include <utility>

#include "actors/pending_result.h"
#include "actors/serialise.h"
#include "actors/task_error.h"

namespace paceline {

/// What a call or a task will give. Copies share one result; dropping the last one lets the cluster forget it. Any
/// thread.
template <class T>
class Future {
 public:
  Future() = default;
  explicit Future(actors::PendingResultPtr pending) : pending_(std::move(pending)) {}

  /// Blocks until the result is there; each call decodes a copy. Throws TaskError with what the task threw, and where.
  T get() const {
    const auto& bytes = checked().wait();
    if (!bytes) throw TaskError(bytes.error());
    if constexpr (!std::is_void_v<T>) {
      auto value = actors::from_bytes<T>(*bytes, "a result");
      if (!value) throw TaskError(value.error());
      return *std::move(value);
    }
  }
  /// Whether get() would not block.
  bool ready() const { return checked().ready(); }
  /// False if it is not there after `timeout`.
  bool wait_for(Duration timeout) const { return checked().wait_for(timeout); }
  /// False for a default-constructed future.
  bool valid() const { return pending_ != nullptr; }

  const actors::PendingResultPtr& pending() const { return pending_; }

 private:
  const actors::PendingResult& checked() const {
    if (!pending_) throw TaskError({ErrorKind::invalid, "an empty future was asked for its result"});
    return *pending_;
  }
  actors::PendingResultPtr pending_;
};

}  // namespace paceline
