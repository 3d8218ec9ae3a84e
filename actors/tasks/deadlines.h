#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/pending_result.h"
#include "runtime/base/instant.h"

namespace paceline::actors {

/// When tasks are too late. Sans-I/O; the client guards it, ends what take_late() gives, and says of what is over
/// before that it is. It keeps no result: one that nobody else keeps is over. Of a result and a deadline at the same
/// time whichever is told of first wins; the other one finds nothing.
class Deadlines {
 public:
  struct Late {
    PendingResultPtr result;
    std::string name;  ///< The task's; may be empty.
    Duration timeout;
  };

  /// True: it is the next one. A timeout that is not positive is over at once, one beyond 100 years counts as that.
  bool add(const PendingResultPtr& result, std::string name, Duration timeout, Instant now);
  /// Neither late nor over.
  bool has(TaskId task) const { return by_id_.contains(task); }
  /// It is over, if it is one of these.
  void remove(TaskId task);
  /// Those that have no result by `now`, in the order of their deadlines; they are no more of these.
  std::vector<Late> take_late(Instant now);
  /// When take_late() has something to give, at the latest.
  std::optional<Instant> next() const;
  std::size_t size() const { return tasks_.size(); }

 private:
  struct Task {
    TaskId id;
    std::weak_ptr<PendingResult> result;
    std::string name;
    Duration timeout;
  };
  using Order = std::multimap<Instant, Task>;

  Order tasks_;
  std::unordered_map<TaskId, Order::iterator> by_id_;
};

}  // namespace paceline::actors
