#include "algorithms/job/places.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/json.h"

namespace paceline::job {

Places::Places(std::vector<std::int32_t> node_of, const std::vector<std::int32_t>& vacant)
    : node_of_(std::move(node_of)), states_(node_of_.size(), State::there) {
  for (const std::int32_t rank : vacant)
    if (is_one(rank)) set(rank, State::vacant);
}

bool Places::is_taken(std::int32_t rank) const {
  return state(rank) == State::starts || state(rank) == State::there || state(rank) == State::away;
}

std::int32_t Places::taken() const {
  std::int32_t taken = 0;
  for (std::size_t rank = 0; rank < states_.size(); ++rank) taken += is_taken(static_cast<std::int32_t>(rank)) ? 1 : 0;
  return taken;
}

std::int32_t Places::taken_on(std::int32_t node) const {
  std::int32_t taken = 0;
  for (std::size_t rank = 0; rank < states_.size(); ++rank)
    taken += node_of_[rank] == node && is_taken(static_cast<std::int32_t>(rank)) ? 1 : 0;
  return taken;
}

std::int32_t Places::there_on(std::int32_t node) const {
  std::int32_t there = 0;
  for (std::size_t rank = 0; rank < states_.size(); ++rank)
    there += node_of_[rank] == node && states_[rank] == State::there ? 1 : 0;
  return there;
}

void Places::on_event(const nlohmann::json& event) {
  const std::string kind = event.value("event", "");
  const auto rank = event.value("worker", -1);
  if (kind == "scale") want(event.value("workers", 0));
  if (kind == "left") on_left(rank, event.value("returns", false), event.value("drained", false));
  if (kind == "returned") on_there(rank);
  if (kind == "node_lost") on_node_lost(event.value("node", -1));
}

/// Another one is not wanted in its place.
void Places::lose(std::int32_t rank, State state) {
  if (wanted_ && is_taken(rank)) --*wanted_;
  set(rank, state);
}

void Places::on_left(std::int32_t rank, bool returns, bool drained) {
  if (!is_one(rank) || state(rank) == State::vacant || state(rank) == State::over) return;
  if (returns) return set(rank, State::away);
  if (drained) return set(rank, State::over);
  lose(rank, State::lost);
}

void Places::on_there(std::int32_t rank) {
  if (is_one(rank)) set(rank, State::there);
}

void Places::on_over(std::int32_t rank) {
  if (!is_one(rank)) return;
  if (state(rank) == State::starts || state(rank) == State::over) lose(rank, State::vacant);
}

void Places::on_node_lost(std::int32_t node) {
  for (std::size_t rank = 0; rank < states_.size(); ++rank)
    if (node_of_[rank] == node) lose(static_cast<std::int32_t>(rank), State::unreachable);
}

/// Of those that nobody has, the lowest of a node that has fewest workers.
std::optional<std::int32_t> Places::next_to_start() const {
  std::optional<std::int32_t> best;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const auto rank = static_cast<std::int32_t>(i);
    if (state(rank) != State::vacant && state(rank) != State::lost) continue;
    if (!best || taken_on(node_of_[i]) < taken_on(node_of_[static_cast<std::size_t>(*best)])) best = rank;
  }
  return best;
}

/// The highest of a node that has most workers, and not one only that is there: who is on the way may not come.
std::optional<std::int32_t> Places::next_to_leave() const {
  std::optional<std::int32_t> best;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const auto rank = static_cast<std::int32_t>(i);
    if (state(rank) != State::there || there_on(node_of_[i]) < 2) continue;
    if (!best || taken_on(node_of_[i]) >= taken_on(node_of_[static_cast<std::size_t>(*best)])) best = rank;
  }
  return best;
}

Places::Steps Places::next() {
  Steps steps;
  if (!wanted_) return steps;
  while (taken() < *wanted_) {
    const auto rank = next_to_start();
    if (!rank) break;
    set(*rank, State::starts);
    steps.start.push_back(*rank);
  }
  while (taken() > *wanted_) {
    const auto rank = next_to_leave();
    if (!rank) break;
    set(*rank, State::leaves);
  }
  for (std::size_t rank = 0; rank < states_.size(); ++rank)
    if (states_[rank] == State::leaves) steps.ask.push_back(static_cast<std::int32_t>(rank));
  return steps;
}

}  // namespace paceline::job
