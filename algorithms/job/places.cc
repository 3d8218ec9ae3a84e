#include "algorithms/job/places.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "runtime/base/json.h"

namespace paceline::job {

Places::Places(std::vector<std::int32_t> node_of, const std::vector<std::int32_t>& vacant, std::int64_t least,
               bool grows)
    : node_of_(std::move(node_of)),
      states_(node_of_.size(), State::there),
      least_(std::max<std::int64_t>(least, 1)),
      grows_(grows) {
  for (const std::int32_t rank : vacant)
    if (is_one(rank)) set(rank, State::vacant);
}

bool Places::is_taken(std::int32_t rank) const {
  if (drained_.contains(rank)) return false;
  return state(rank) == State::starts || state(rank) == State::there || state(rank) == State::away;
}

std::int32_t Places::taken() const {
  return count([this](std::int32_t rank) { return is_taken(rank); });
}

std::int32_t Places::taken_on(std::int32_t node) const {
  return count([&](std::int32_t rank) { return node_of(rank) == node && is_taken(rank); });
}

std::int32_t Places::there_on(std::int32_t node) const {
  return count([&](std::int32_t rank) { return node_of(rank) == node && is_there(rank); });
}

std::int32_t Places::there() const {
  return count([this](std::int32_t rank) { return is_there(rank); });
}

void Places::want(std::int32_t workers) {
  wanted_ = workers;
  grows_ = false;
  for (auto& [node, had] : had_) had.clear();
}

void Places::drain(std::int32_t rank) {
  if (!is_one(rank) || !is_taken(rank)) return;
  if (wanted_) want_one_less();
  drained_.insert(rank);
}

void Places::drain_node(std::int32_t node) {
  if (closed_.insert(node).second && !wanted_) wanted_ = taken();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const auto rank = static_cast<std::int32_t>(i);
    if (node_of_[i] == node && is_taken(rank)) drained_.insert(rank);
  }
}

void Places::on_event(const nlohmann::json& event) {
  const std::string kind = event.value("event", "");
  const auto rank = event.value("worker", -1);
  if (kind == "scale") want(event.value("workers", 0));
  if (kind == "drain") event.value("all", false) ? drain_node(event.value("node", -1)) : drain(rank);
  if (kind == "left" && !event.value("with_node", false))
    on_left(rank, event.value("returns", false), event.value("drained", false));
  if (kind == "returned") on_there(rank);
  if (kind == "node_lost") on_node_lost(event.value("node", -1));
  if (kind == "node_joined")
    on_node_joined(event.value("node", -1), event.value("places", std::vector<std::int32_t>{}));
  if (kind == "room") on_room(event.value("node", -1), event.value("cpus", 1));
}

/// Than there can be, where more are wanted.
void Places::want_one_less() {
  const std::int32_t possible = count(
      [this](std::int32_t rank) { return state(rank) != State::unreachable && !closed_.contains(node_of(rank)); });
  wanted_ = std::min(*wanted_, std::max(possible, taken())) - 1;
}

/// Another one is not wanted in its place.
void Places::lose(std::int32_t rank, State state) {
  if (wanted_ && is_taken(rank)) want_one_less();
  drained_.erase(rank);
  set(rank, state);
}

void Places::on_left(std::int32_t rank, bool returns, bool drained) {
  if (!is_one(rank)) return;
  if (state(rank) == State::vacant || state(rank) == State::over || state(rank) == State::unreachable) return;
  if (returns && state(rank) == State::leaves) drained_.insert(rank);  // It leaves when it is back.
  if (returns) return set(rank, State::away);
  if (drained) return set(rank, State::over);
  lose(rank, State::lost);
}

void Places::on_there(std::int32_t rank) {
  if (!is_one(rank)) return;
  set(rank, State::there);
  if (const auto had = had_.find(node_of(rank)); had != had_.end()) had->second.erase(rank);
}

void Places::on_over(std::int32_t rank) {
  if (!is_one(rank)) return;
  if (state(rank) == State::starts || state(rank) == State::away || state(rank) == State::over)
    lose(rank, State::vacant);
}

void Places::on_node_lost(std::int32_t node) {
  auto& had = had_[node];
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const auto rank = static_cast<std::int32_t>(i);
    if (node_of_[i] != node) continue;
    if (is_taken(rank)) had.insert(rank);
    lose(rank, State::unreachable);
  }
  closed_.erase(node);
}

/// Those that are not there yet it still has had where it is lost again.
void Places::on_node_joined(std::int32_t node, const std::vector<std::int32_t>& places) {
  for (const std::int32_t rank : places) {
    if (!is_one(rank)) continue;
    if (const auto moving = moving_.find(rank); moving != moving_.end() && moving->second == node)
      moving_.erase(moving);
    const auto before = std::exchange(node_of_[static_cast<std::size_t>(rank)], node);
    if (before == node) continue;
    set(rank, is_free(rank) ? State::vacant : State::over);
    if (const auto had = had_.find(before); had != had_.end()) had->second.erase(rank);
  }
  const auto had = had_.find(node);
  const auto before = taken();
  std::int32_t back = 0;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (node_of_[i] != node || states_[i] != State::unreachable) continue;
    const bool is_its =
        had != had_.end() && had->second.contains(static_cast<std::int32_t>(i)) && !closed_.contains(node);
    states_[i] = is_its ? State::lost : State::vacant;
    back += is_its ? 1 : 0;
  }
  if (back > 0) wanted_ = wanted_.value_or(before) + back;
}

void Places::on_room(std::int32_t node, std::int32_t cpus) {
  if (std::find(node_of_.begin(), node_of_.end(), node) != node_of_.end()) return;
  later_.insert(node);
  const auto places = static_cast<std::int32_t>(states_.size());
  if (grows_ && grown_.insert(node).second)  // It may be told again.
    wanted_ = std::min(places, wanted_.value_or(taken()) + std::clamp(cpus, 0, places));
}

nlohmann::json Places::list(const Moves& moves) {
  auto list = nlohmann::json::array();
  for (const auto& [rank, node] : moves) list.push_back({rank, node});
  return list;
}

void Places::on_moved(const Result<nlohmann::json>& answer) {
  if (!answer && answer.error().kind != ErrorKind::infeasible && answer.error().kind != ErrorKind::invalid)
    return;  // It may have been done, or can be in a moment.
  const auto numbers = [&](const char* name) {
    return answer && answer->is_object() ? answer->value(name, std::vector<std::int32_t>{})
                                         : std::vector<std::int32_t>{};
  };
  const auto nodes = numbers("nodes"), lost = numbers("lost");
  for (const auto& [rank, node] : Moves(moving_)) {
    const auto at = static_cast<std::size_t>(rank);
    const bool is_done = at < nodes.size() && nodes[at] == node;
    if (is_done && std::find(lost.begin(), lost.end(), node) == lost.end()) continue;  // It says when it is there.
    moving_.erase(rank);
    if (!answer && answer.error().kind == ErrorKind::infeasible) later_.erase(node);  // Else it is tried otherwise.
    const std::int32_t from = node_of(rank);
    if (!is_done && std::any_of(drained_.begin(), drained_.end(), [&](auto each) { return node_of(each) == from; }))
      kept_.insert(from);
    if (!is_done) continue;
    node_of_[at] = node;
    closed_.erase(node);
    set(rank, State::unreachable);
  }
}

/// Nobody has it, nor will have it where it is now.
bool Places::is_free(std::int32_t rank) const {
  return state(rank) == State::vacant || state(rank) == State::lost || state(rank) == State::unreachable;
}

/// Workers of drained nodes that are on their way out: their places are free soon.
bool Places::are_some_leaving() const {
  return count([this](std::int32_t rank) { return is_leaving(rank) && closed_.contains(node_of(rank)); }) > 0;
}

/// Of lost nodes first, then of drained ones, then of those that have most and more than `share`.
std::optional<std::int32_t> Places::next_to_move(const std::map<std::int32_t, std::int32_t>& has,
                                                 std::int32_t share) const {
  const auto how_soon = [&](std::int32_t rank) {
    const std::int32_t node = node_of(rank);
    if (!is_free(rank) || moving_.contains(rank)) return std::pair(0, 0);
    if (state(rank) == State::unreachable) return std::pair(3, 0);
    if (closed_.contains(node)) return std::pair(has.at(node) > 1 ? 2 : 0, 0);
    return std::pair(has.at(node) > share && !later_.contains(node) ? 1 : 0, has.at(node));
  };
  std::optional<std::int32_t> best;
  for (std::int32_t rank = 0; is_one(rank); ++rank)
    if (how_soon(rank).first > 0 && (!best || how_soon(rank) >= how_soon(*best))) best = rank;
  return best;
}

/// To each as many as it would have if nodes had as many as each other, and all that lie where nobody can come.
void Places::plan_moves() {
  std::map<std::int32_t, std::int32_t> has;  // Of nodes that are there.
  std::set<std::int32_t> lost, open;
  for (std::int32_t rank = 0; is_one(rank); ++rank)
    state(rank) == State::unreachable ? void(lost.insert(node_of(rank))) : void(++has[node_of(rank)]);
  for (const auto& [node, places] : has)
    if (!closed_.contains(node)) open.insert(node);
  std::vector<std::int32_t> to;
  std::copy_if(later_.begin(), later_.end(), std::back_inserter(to),
               [&](std::int32_t node) { return !closed_.contains(node) && !lost.contains(node); });
  if (to.empty() || are_some_leaving()) return;
  open.insert(to.begin(), to.end());
  const auto share = std::max(1, static_cast<std::int32_t>(states_.size() / open.size()));
  while (const auto rank = next_to_move(has, share)) {
    const auto least = std::min_element(to.begin(), to.end(), [&](auto a, auto b) { return has[a] < has[b]; });
    if (open.contains(node_of(*rank)) && has[*least] >= share) return;
    if (state(*rank) != State::unreachable) --has[node_of(*rank)];
    ++has[*least];
    moving_[*rank] = *least;
  }
}

/// Of those that nobody has, the lowest of a node that has fewest workers.
std::optional<std::int32_t> Places::next_to_start() const {
  std::optional<std::int32_t> best;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const auto rank = static_cast<std::int32_t>(i);
    if ((state(rank) != State::vacant && state(rank) != State::lost) || closed_.contains(node_of_[i])) continue;
    if (moving_.contains(rank)) continue;
    if (!best || taken_on(node_of_[i]) < taken_on(node_of_[static_cast<std::size_t>(*best)])) best = rank;
  }
  return best;
}

/// The highest of a node that has most workers, and not one only that is there: who is on the way may not come.
std::optional<std::int32_t> Places::next_to_leave() const {
  std::optional<std::int32_t> best;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const auto rank = static_cast<std::int32_t>(i);
    if (!is_there(rank) || drained_.contains(rank) || there_on(node_of_[i]) < 2) continue;
    if (!best || taken_on(node_of_[i]) >= taken_on(node_of_[static_cast<std::size_t>(*best)])) best = rank;
  }
  return best;
}

std::vector<std::int32_t> Places::kept() const {
  std::vector<std::int32_t> kept;
  std::copy_if(drained_.begin(), drained_.end(), std::back_inserter(kept), [this](std::int32_t rank) {
    return has_to_stay(rank) && (there() <= least_ || !(moving_.contains(rank) || node_instead_of(node_of(rank))));
  });
  return kept;
}

bool Places::is_last_of_leader(std::int32_t rank) const {
  const std::int32_t node = node_of(rank);
  const bool leads =
      count([&](std::int32_t other) { return state(other) != State::unreachable && node_of(other) < node; }) == 0;
  return is_there(rank) && leads && there_on(node) < 2;
}

bool Places::has_to_stay(std::int32_t rank) const {
  return is_there(rank) && (there() <= least_ || is_last_of_leader(rank));
}

/// That all its places can be of: the one that has fewest.
std::optional<std::int32_t> Places::node_instead_of(std::int32_t node) const {
  if (kept_.contains(node)) return std::nullopt;
  std::map<std::int32_t, std::int32_t> has;
  for (std::int32_t rank = 0; is_one(rank); ++rank)
    if (state(rank) != State::unreachable && node_of(rank) != node && !closed_.contains(node_of(rank)))
      ++has[node_of(rank)];
  const auto least = std::min_element(has.begin(), has.end(), [](auto a, auto b) { return a.second < b.second; });
  return least == has.end() ? std::nullopt : std::optional(least->first);
}

/// The node that leads, of which all but one have gone.
void Places::plan_to_leave() {
  for (const std::int32_t drained : drained_) {
    const std::int32_t node = node_of(drained);
    const auto to = node_instead_of(node);
    if (!is_last_of_leader(drained) || there() <= least_ || !to) continue;
    Moves moves;
    for (std::int32_t rank = 0; is_one(rank); ++rank) {
      if (node_of(rank) != node) continue;
      if (rank != drained && !is_free(rank)) return;
      moves[rank] = *to;
    }
    moving_ = std::move(moves);
    return;
  }
}

/// One that is drained. Who is on its way, or comes back, leaves when it is there.
bool Places::goes(std::int32_t rank) {
  if (has_to_stay(rank)) return false;
  if (is_there(rank)) set(rank, State::leaves);
  return state(rank) != State::starts && state(rank) != State::away;
}

Places::Steps Places::next() {
  Steps steps;
  std::erase_if(drained_, [this](std::int32_t rank) { return goes(rank); });
  if (moving_.empty()) plan_to_leave();
  if (wanted_ && taken() < *wanted_ && moving_.empty()) plan_moves();
  steps.move = moving_;
  const bool waits =
      std::any_of(moving_.begin(), moving_.end(), [this](const auto& move) { return later_.contains(move.second); });
  while (!waits && wanted_ && taken() < *wanted_) {
    const auto rank = next_to_start();
    if (!rank) break;
    set(*rank, State::starts);
    steps.start.push_back(*rank);
  }
  while (wanted_ && taken() > *wanted_) {
    const auto rank = next_to_leave();
    if (!rank) break;
    set(*rank, State::leaves);
  }
  for (std::size_t rank = 0; rank < states_.size(); ++rank)
    if (states_[rank] == State::leaves) steps.ask.push_back(static_cast<std::int32_t>(rank));
  return steps;
}

}  // namespace paceline::job
