#include "actors/pending_result.h"

#include <utility>

namespace paceline::actors {

bool PendingResult::ready() const {
  std::lock_guard lock(mutex_);
  return value_.has_value();
}

bool PendingResult::wait_for(Duration timeout) const {
  std::unique_lock lock(mutex_);
  return arrived_.wait_for(lock, timeout, [this] { return value_.has_value(); });
}

const Result<Bytes>& PendingResult::wait() const {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return value_.has_value(); });
  return *value_;
}

void PendingResult::when_ready(std::function<void()> then) {
  {
    std::lock_guard lock(mutex_);
    if (!value_) {
      then_.push_back(std::move(then));
      return;
    }
  }
  then();
}

void PendingResult::complete(Result<Bytes> value) {
  std::vector<std::function<void()>> then;
  {
    std::lock_guard lock(mutex_);
    if (value_) return;
    value_ = std::move(value);
    then = std::exchange(then_, {});
    arrived_.notify_all();
  }
  for (auto& run : then) run();
}

}  // namespace paceline::actors
