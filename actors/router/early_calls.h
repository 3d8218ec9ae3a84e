#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "actors/protocol.h"

namespace paceline::actors {

/// Calls to actors that nobody has created here yet. An actor's creation comes by way of its owner's agent; who was
/// given the handle past that (a task whose arguments came through a ring, a worker of a third node) may be quicker.
/// Sans-I/O; owned by the router, which bounds how many there are.
class EarlyCalls {
 public:
  struct Early {
    Call call;
    NodeId from;
  };

  /// `until`: of the first call to this actor, when it does not exist after all.
  void add(Call call, NodeId from, Instant until) {
    auto& waiting = actors_.try_emplace(call.actor, Waiting{until, {}}).first->second;
    waiting.calls.push_back({std::move(call), from});
    ++size_;
  }
  /// In the order in which they came: the actor is there, or will never be.
  std::vector<Early> take(ActorId actor) {
    auto node = actors_.extract(actor);
    if (node.empty()) return {};
    size_ -= node.mapped().calls.size();
    return std::move(node.mapped().calls);
  }
  /// Those of actors that do not exist.
  std::vector<Early> take_late(Instant now) {
    std::vector<ActorId> late;
    for (const auto& [actor, waiting] : actors_)
      if (waiting.until <= now) late.push_back(actor);
    std::vector<Early> calls;
    for (const ActorId actor : late)
      for (auto& early : take(actor)) calls.push_back(std::move(early));
    return calls;
  }
  /// Nobody waits for these any more; whether there were any.
  bool forget(const std::function<bool(const Early&)>& over) {
    const auto before = size_;
    for (auto& [actor, waiting] : actors_) size_ -= std::erase_if(waiting.calls, over);
    std::erase_if(actors_, [](const auto& entry) { return entry.second.calls.empty(); });
    return size_ < before;
  }
  /// When take_late() has some.
  std::optional<Instant> next_deadline() const {
    std::optional<Instant> next;
    for (const auto& [actor, waiting] : actors_)
      if (!next || waiting.until < *next) next = waiting.until;
    return next;
  }
  std::size_t size() const { return size_; }

 private:
  struct Waiting {
    Instant until;
    std::vector<Early> calls;
  };
  std::map<ActorId, Waiting> actors_;
  std::size_t size_ = 0;
};

}  // namespace paceline::actors
