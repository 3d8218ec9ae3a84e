#pragma once

#include <list>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "actors/worker/work_queue.h"

namespace paceline::worker {

/// The queues of an actor's concurrency groups. The first one is that of all calls in no group, and the only one of
/// a worker for tasks. Its I/O thread pushes; the actor's creation, which it pushes before any call, makes the others.
class CallQueues {
 public:
  struct Group {
    std::string name;  ///< Empty: the first.
    WorkQueue queue{};
  };

  /// False at a queue's bound. A call in a group that the actor does not have goes to the first queue.
  bool push(actors::Work work) {
    const auto* create = std::get_if<actors::CreateActor>(&work);
    if (create != nullptr && !std::exchange(created_, true)) {  // A second one is refused by who runs it.
      first().set_threads(static_cast<std::size_t>(create->concurrency.threads));
      for (const auto& group : create->concurrency.groups) {
        auto& made = groups_.emplace_back();
        made.name = group.name;
        made.queue.set_threads(static_cast<std::size_t>(group.threads));
      }
    }
    const auto* call = std::get_if<actors::Call>(&work);
    return (call == nullptr ? first() : of(call->group)).push(std::move(work));
  }
  /// What waits in any of them leaves it.
  std::optional<actors::Call> take(TaskId task, const std::string& owner) {
    for (auto& group : groups_)
      if (auto taken = group.queue.take(task, owner)) return taken;
    return std::nullopt;
  }
  WorkQueue& first() { return groups_.front().queue; }
  /// Once the creation has been taken out of the first one, and not before.
  std::list<Group>& groups() { return groups_; }

 private:
  WorkQueue& of(const std::string& name) {
    for (auto& group : groups_)
      if (group.name == name) return group.queue;
    return first();
  }
  std::list<Group> groups_ = std::list<Group>(1);
  bool created_ = false;
};

}  // namespace paceline::worker
