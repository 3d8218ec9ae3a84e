#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include "actors/protocol.h"

namespace paceline::worker {

/// Which of the calls that a worker has begun are to stop. The compute thread begins and ends them, the I/O thread
/// cancels. One that is cancelled before it begins, because the word has overtaken it or it is just being taken out of
/// the queue, is told so from its beginning. Bound: kEarlyMax of those words.
class Stops {
 public:
  std::stop_token begin(const actors::Call& call) {
    std::lock_guard lock(mutex_);
    Begun begun{call.owner, {}};
    const auto early = std::find(early_.begin(), early_.end(), std::pair(call.task, call.owner));
    if (early != early_.end()) {
      early_.erase(early);
      begun.stop.request_stop();
    }
    auto token = begun.stop.get_token();
    begun_.insert_or_assign(call.task, std::move(begun));
    return token;
  }
  /// Of one that has begun.
  std::stop_token token_of(TaskId task) {
    std::lock_guard lock(mutex_);
    const auto found = begun_.find(task);
    return found == begun_.end() ? std::stop_token() : found->second.stop.get_token();
  }
  /// It is over. Whether it was cancelled.
  bool end(TaskId task) {
    std::lock_guard lock(mutex_);
    const auto ended = begun_.extract(task);
    return !ended.empty() && ended.mapped().stop.stop_requested();
  }
  /// Of what is not in the queue. By force, and if it has begun, `end_process` is called: before anything else can
  /// begin or end.
  template <class EndProcess>
  void cancel(const actors::Cancel& cancel, EndProcess end_process) {
    std::lock_guard lock(mutex_);
    const auto found = begun_.find(cancel.task);
    if (found != begun_.end()) {
      if (found->second.owner != cancel.owner) return;
      found->second.stop.request_stop();
      if (cancel.force) end_process();
      return;
    }
    early_.emplace_back(cancel.task, cancel.owner);
    if (early_.size() > kEarlyMax) early_.pop_front();
  }

 private:
  static constexpr std::size_t kEarlyMax = 256;
  struct Begun {
    std::string owner;
    std::stop_source stop;
  };

  std::mutex mutex_;
  std::map<TaskId, Begun> begun_;
  std::deque<std::pair<TaskId, std::string>> early_;
};

}  // namespace paceline::worker
