#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/instant.h"

namespace paceline::actors {

/// Whether an actor is started again when its process dies, and what then happens to the calls that it had.
struct RestartRule {
  int restarts = 0;      ///< At most; negative: always.
  int call_retries = 0;  ///< How often a call that was under way is sent again; negative: always.
  Duration within{};     ///< So many restarts in any time as long as this; zero: ever.
  bool may_restart(int restarted) const { return restarts < 0 || restarted < restarts; }
  bool may_resend(int resent) const { return call_retries < 0 || resent < call_retries; }
  bool operator==(const RestartRule&) const = default;
};

/// The calls that one process of an actor has been sent and has not answered, in the order in which it was sent them,
/// and what its death does to each:
///
///   not taken by the dead process: it has not begun. Sent again, whatever the rule.
///   taken: nobody knows whether it ran. Sent again where the rule says so, else it fails, and says that.
///
/// What is sent again keeps its place: before all that was not sent yet. Sans-I/O. `Kept` is what sending a call again
/// takes.
template <class Kept>
class SentCalls {
 public:
  struct Sent {
    TaskId task;
    Kept call;
    int resent = 0;  ///< How often before, because a process that had taken it died.
  };
  struct Outcome {
    std::vector<Sent> again;  ///< In order.
    std::vector<TaskId> failed;
  };

  void add(Sent sent) {
    place_[sent.task] = next_;
    calls_.emplace(next_++, std::move(sent));
  }
  /// It has its result. False: it is none of these.
  bool remove(TaskId task) {
    const auto place = place_.find(task);
    if (place == place_.end()) return false;
    calls_.erase(place->second);
    place_.erase(place);
    return true;
  }
  std::size_t size() const { return calls_.size(); }

  /// The process is dead, and has not taken the last `untaken` of what it was sent: these.
  std::vector<Sent> take_untaken(std::size_t untaken) {
    std::vector<Sent> again;
    for (; untaken > 0 && !calls_.empty(); --untaken) again.push_back(pop(std::prev(calls_.end())));
    std::reverse(again.begin(), again.end());
    return again;
  }
  /// The process is dead: what becomes of those that it had taken, that is of all that are left.
  Outcome on_death(const RestartRule& rule) {
    Outcome outcome;
    while (!calls_.empty()) {
      auto sent = pop(calls_.begin());
      if (!rule.may_resend(sent.resent)) {
        outcome.failed.push_back(sent.task);
        continue;
      }
      ++sent.resent;
      outcome.again.push_back(std::move(sent));
    }
    return outcome;
  }

 private:
  Sent pop(typename std::map<std::uint64_t, Sent>::iterator at) {
    auto sent = std::move(at->second);
    place_.erase(sent.task);
    calls_.erase(at);
    return sent;
  }

  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Sent> calls_;  // By place.
  std::unordered_map<TaskId, std::uint64_t> place_;
};

}  // namespace paceline::actors
