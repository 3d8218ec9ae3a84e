#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "scheduler/record/chronicle.h"

namespace paceline::scheduler {

/// Other agents' messages of a strategy without rounds, until the core is told of them: of each kind that an agent
/// sends of a worker one after the other.
template <class Message>
class Exchanged {
 public:
  explicit Exchanged(Chronicle& chronicle) : chronicle_(chronicle) {}

  void hear(NodeId from, Rank of, std::int32_t kind, Message message, Instant now) {
    waiting_[{from, of, kind}].push_back(std::move(message));
    chronicle_.hear({.kind = Decision::Kind::exchanged, .rank = of, .node = from, .group = kind}, now);
  }
  /// What the core is told of; nullopt: it has not come.
  std::optional<Message> take(const Decision& told) {
    auto& waiting = waiting_[{told.node, told.rank, told.group}];
    if (waiting.empty()) return {};
    std::optional message(std::move(waiting.front()));
    waiting.pop_front();
    return message;
  }

 private:
  Chronicle& chronicle_;
  std::map<std::tuple<NodeId, Rank, std::int32_t>, std::deque<Message>> waiting_;
};

}  // namespace paceline::scheduler
