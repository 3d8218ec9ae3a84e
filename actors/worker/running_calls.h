#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include "actors/protocol.h"
#include "actors/stream/incoming_stream.h"
#include "actors/wait_observer.h"

namespace paceline::worker {

/// What the owners of the calls that a worker has begun have said of them: which are to stop, and how far those may go
/// on that give streams. The threads that run calls begin and end them, the I/O thread hears. One that is cancelled
/// before it begins, because the word has overtaken it or it is just being taken out of the queue, is told so from its
/// beginning. Bound: kEarlyMax of those words.
class RunningCalls {
 public:
  std::stop_token begin(const actors::Call& call) {
    std::lock_guard lock(mutex_);
    Begun begun;
    begun.owner = call.owner;
    begun.ahead = call.ahead;
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
  /// Of what is not in the queue. If its worker is to end, and it has begun, `end_process` is called: before anything
  /// else can begin or end.
  template <class EndProcess>
  void on_signal(const actors::Signal& signal, EndProcess end_process) {
    using Kind = actors::Signal::Kind;
    std::lock_guard lock(mutex_);
    const auto found = begun_.find(signal.task);
    if (found != begun_.end()) {
      if (found->second.owner != signal.owner) return;
      if (signal.kind == Kind::taken) {
        found->second.take(signal.taken);
      } else {
        found->second.stop.request_stop();
        if (signal.kind == Kind::end) end_process();
      }
      return taken_.notify_all();
    }
    if (signal.kind == Kind::taken) return;
    early_.emplace_back(signal.task, signal.owner);
    if (early_.size() > kEarlyMax) early_.pop_front();
  }

  /// Waits until the call may give a value of so many bytes; its number, from 1. 0: nobody wants it any more.
  std::uint64_t give(TaskId task, std::size_t bytes) {
    actors::ObservedWait observed;
    std::unique_lock lock(mutex_);
    const auto found = begun_.find(task);
    if (found == begun_.end()) return 0;
    Begun& begun = found->second;
    const auto may_go_on = [&] { return begun.stop.stop_requested() || begun.has_room(); };
    (void)observed.wait(lock, taken_, std::nullopt, TaskId{}, may_go_on);
    if (begun.stop.stop_requested()) return 0;
    begun.untaken.push_back(bytes);
    begun.untaken_bytes += bytes;
    return ++begun.given;
  }

 private:
  static constexpr std::size_t kEarlyMax = 256;
  struct Begun {
    std::string owner{};
    std::stop_source stop{};
    // Of a stream:
    std::uint32_t ahead = 0;
    std::uint64_t given = 0;
    std::uint64_t wanted = 0;           ///< How many values its owner has asked for,
    std::deque<std::size_t> untaken{};  ///< and the sizes of those that were given beyond them.
    std::size_t untaken_bytes = 0;

    bool has_room() const {
      if (given < wanted || untaken.empty()) return true;
      return given < wanted + ahead && untaken_bytes < actors::kStreamBytesMax;
    }
    void take(std::uint64_t asked) {
      wanted = std::max(wanted, asked);
      while (!untaken.empty() && given - untaken.size() < wanted) {
        untaken_bytes -= untaken.front();
        untaken.pop_front();
      }
    }
  };

  std::mutex mutex_;
  std::condition_variable taken_;
  std::map<TaskId, Begun> begun_;
  std::deque<std::pair<TaskId, std::string>> early_;
};

}  // namespace paceline::worker
