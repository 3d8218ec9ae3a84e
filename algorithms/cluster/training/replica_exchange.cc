#include "algorithms/cluster/training/replica_exchange.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace paceline::cluster {
namespace {

using Need = ReplicaExchange::Need;

/// Of one that is not admitted yet: nothing serves it.
constexpr Need kNotYet{.least = std::numeric_limits<std::int64_t>::max()};

bool is_served(const Need& need, std::int64_t update) {
  return need.exact ? update == need.least : update >= need.least;
}

}  // namespace

ReplicaExchange::ReplicaExchange(NodeId self, const std::vector<NodeId>& node_of)
    : self_(self), first_(node_of.front()), workers_(node_of.size()), others_(node_of.begin(), node_of.end()) {
  others_.erase(self);
}

bool ReplicaExchange::waits(Rank rank) const {
  return std::any_of(waiters_.begin(), waiters_.end(), [&](const Waiter& w) { return w.rank == rank; });
}

ReplicaExchange::Actions ReplicaExchange::on_wanted(Rank rank, NodeId from, Need need, const Donors& donors,
                                                    Instant now) {
  const bool first = from == self_ && !has_started(rank);
  if (first && start_) {
    started_.insert(rank);
    return {Give{rank, *start_}};
  }
  if (const auto returns = returning_.find(rank); from == self_ && returns != returning_.end()) need = returns->second;
  const auto same = std::find_if(waiters_.begin(), waiters_.end(), [&](const Waiter& w) { return w.rank == rank; });
  if (same == waiters_.end()) {
    waiters_.push_back({rank, from, need});
  } else if (same->need != need) {  // Else it asks again for what is under way.
    *same = {rank, from, need};
  }
  return first ? Actions{} : ask(donors, now);  // The start is on its way from rank 0.
}

void ReplicaExchange::on_return(Rank rank) {
  started_.insert(rank);
  returning_[rank] = kNotYet;
  std::erase_if(waiters_, [&](const Waiter& w) { return w.rank == rank && w.node == self_; });
}

ReplicaExchange::Actions ReplicaExchange::on_admitted(Rank rank, Need need, const Donors& donors, Instant now) {
  returning_[rank] = need;
  for (Waiter& waiter : waiters_)
    if (waiter.rank == rank && waiter.node == self_) waiter = {rank, self_, need};
  return waiters_.empty() ? Actions{} : ask(donors, now);
}

/// At the update itself it may have looked before.
ReplicaExchange::Actions ReplicaExchange::on_asked(const Donor& donor) {
  Actions actions;
  for (Waiter& waiter : waiters_)
    if (waiter.asked == donor.rank && donor.step >= waiter.need.least) miss(waiter, actions);
  forget_refused();
  return actions;
}

ReplicaExchange::Actions ReplicaExchange::on_left(Rank rank, const Donors& donors, Instant now) {
  returning_.erase(rank);
  std::erase_if(waiters_, [&](const Waiter& w) { return w.rank == rank && w.node == self_; });
  const bool was_asked =
      std::any_of(waiters_.begin(), waiters_.end(), [&](const Waiter& w) { return w.asked == rank; });
  return was_asked ? ask(donors, now) : Actions{};
}

ReplicaExchange::Actions ReplicaExchange::on_end(std::int64_t update, const Donors& donors, Instant now) {
  const Need need{.least = update};
  for (auto& [rank, returning] : returning_) returning = need;
  bool is_news = false;
  for (Waiter& waiter : waiters_) {
    if (waiter.need == need) continue;  // It has been asked for.
    waiter = {waiter.rank, waiter.node, need};
    is_news = true;
  }
  return is_news ? ask(donors, now) : Actions{};
}

ReplicaExchange::Actions ReplicaExchange::on_none(NodeId from, const None& none, const Donors& donors, Instant now) {
  if (!others_.contains(from) || waiters_.empty()) return {};
  none_[from] = none;
  Actions actions;
  for (Waiter& waiter : waiters_)
    if (waiter.need.exact && waiter.node == self_ && none.holds) miss(waiter, actions);
  const auto asked = ask(donors, now);
  actions.insert(actions.end(), asked.begin(), asked.end());
  return actions;
}

ReplicaExchange::Actions ReplicaExchange::on_node_gone(NodeId node, const Donors& donors, Instant now) {
  others_.erase(node);
  none_.erase(node);
  std::erase_if(waiters_, [node](const Waiter& w) { return w.node == node; });
  return due() ? ask(donors, now) : Actions{};
}

ReplicaExchange::Actions ReplicaExchange::ask(const Donors& donors, Instant now) {
  Actions actions;
  ask_ahead(donors, actions);
  std::optional<Donor> best;
  None none{.furthest = furthest_waiting(donors)};
  bool anybody = false;
  for (const Donor& donor : donors) {
    if (!may_give(donor.rank)) continue;
    none.holds |= donor.frozen;
    anybody |= !donor.frozen;
    if (!donor.frozen && donor.rank != last_donor_ && (!best || donor.step > best->step)) best = donor;
  }
  const auto serves = [&](const Waiter& w) { return best && !w.need.exact && w.need.least <= best->step; };
  if (std::any_of(waiters_.begin(), waiters_.end(), serves)) {
    due_ = now + kPatience;
    last_donor_ = workers_ > 2 ? best->rank : Rank{-1};
    actions.emplace_back(Capture{best->rank});
    return actions;
  }
  last_donor_ = Rank{-1};
  if (!anybody) refuse_others(actions, none);
  if (none_.size() < others_.size()) {
    ask_next_node(actions, now);
    return actions;
  }
  if (!anybody && is_furthest(none.furthest)) {
    std::erase_if(waiters_, [&](const Waiter& w) { return w.rank == none.furthest.rank; });
    actions.emplace_back(GoOn{none.furthest.rank});
  } else if (nobody_has_a_model(donors)) {
    for (const Waiter& waiter : std::exchange(waiters_, {})) actions.emplace_back(Lost{waiter.rank});
  }
  none_.clear();
  due_ = now + (others_.empty() ? kLook : kPatience);
  return actions;
}

/// For those that need one state and no other: a donor that is on its way to it.
void ReplicaExchange::ask_ahead(const Donors& donors, Actions& actions) {
  for (Waiter& waiter : waiters_) {
    if (!waiter.need.exact) continue;
    const auto least = waiter.need.least;
    const bool was_asked = waiter.asked.value >= 0;
    // One is asked for one state at a time.
    const auto is_busy = [&](Rank rank) {
      return std::any_of(waiters_.begin(), waiters_.end(),
                         [&](const Waiter& w) { return w.asked == rank && w.need != waiter.need; });
    };
    const auto can_give = [&](const Donor& d) {
      if (d.frozen || !may_give(d.rank)) return false;
      return was_asked ? d.rank == waiter.asked && d.step <= least : d.step < least;
    };
    const auto donor = std::find_if(donors.begin(), donors.end(),
                                    [&](const Donor& d) { return can_give(d) && (was_asked || !is_busy(d.rank)); });
    const bool waits_its_turn = !was_asked && std::any_of(donors.begin(), donors.end(), can_give);
    const bool has_donor = std::any_of(donors.begin(), donors.end(), [&](const Donor& d) { return may_give(d.rank); });
    if (donor == donors.end() && !waits_its_turn && (was_asked || has_donor)) {
      miss(waiter, actions);
    } else if (donor != donors.end() && !was_asked) {
      waiter.asked = donor->rank;
      actions.emplace_back(Capture{donor->rank, least});
    }
  }
  forget_refused();
}

void ReplicaExchange::forget_refused() {
  std::erase_if(waiters_, [this](const Waiter& w) { return w.node != self_ && w.need == kNotYet; });
}

/// Nobody here will have just that state any more.
void ReplicaExchange::miss(Waiter& waiter, Actions& actions) {
  waiter = {waiter.rank, waiter.node, kNotYet};
  if (waiter.node != self_) {
    actions.emplace_back(SendNone{waiter.node, {.holds = true}});
    return;
  }
  returning_[waiter.rank] = kNotYet;
  actions.emplace_back(Readmit{waiter.rank});
}

void ReplicaExchange::ask_next_node(Actions& actions, Instant now) {
  const auto next = std::find_if(others_.begin(), others_.end(), [this](NodeId node) { return !none_.contains(node); });
  const auto before = actions.size();
  for (const Waiter& waiter : waiters_)
    if (waiter.node == self_ && waiter.asked.value < 0 && waiter.need != kNotYet)
      actions.emplace_back(AskNode{*next, waiter.rank, waiter.need});
  due_ = now + (actions.size() == before ? kLook : kPatience);
}

void ReplicaExchange::refuse_others(Actions& actions, const None& none) {
  std::set<NodeId> asking;
  for (const Waiter& waiter : waiters_) asking.insert(waiter.node);
  asking.erase(self_);
  for (const NodeId node : asking) actions.emplace_back(SendNone{node, none});
  std::erase_if(waiters_, [this](const Waiter& w) { return w.node != self_; });
}

/// Of the local workers that ask, and that have begun with what all began with.
ReplicaExchange::Donor ReplicaExchange::furthest_waiting(const Donors& donors) const {
  Donor furthest;
  for (const Donor& donor : donors) {
    const bool has_model = waits(donor.rank) && started_.contains(donor.rank) && !returning_.contains(donor.rank);
    if (has_model && (furthest.rank.value < 0 || donor.step > furthest.step)) furthest = donor;
  }
  return furthest;
}

bool ReplicaExchange::is_furthest(const Donor& own) const {
  return own.rank.value >= 0 && std::none_of(none_.begin(), none_.end(), [&](const auto& entry) {
           const Donor& other = entry.second.furthest;
           return other.rank.value >= 0 && (other.step > own.step || (other.step == own.step && other.rank < own.rank));
         });
}

/// But those that ask come back, and have begun anew; all other nodes have been asked.
bool ReplicaExchange::nobody_has_a_model(const Donors& donors) const {
  const auto has_none = [](const None& none) { return !none.holds && none.furthest.rank.value < 0; };
  return !waiters_.empty() &&
         std::all_of(waiters_.begin(), waiters_.end(), [&](const Waiter& w) { return returning_.contains(w.rank); }) &&
         std::all_of(donors.begin(), donors.end(), [&](const Donor& d) { return returning_.contains(d.rank); }) &&
         std::all_of(none_.begin(), none_.end(), [&](const auto& entry) { return has_none(entry.second); });
}

ReplicaExchange::Actions ReplicaExchange::on_captured(Rank from, const Replica& replica) {
  std::set<NodeId> elsewhere;
  if (from.value == 0 && !start_) {
    start_ = replica;
    started_.insert(from);
    if (first_ == self_) elsewhere = others_;
  }
  Actions actions;
  std::vector<Waiter> waiting;
  for (Waiter& waiter : std::exchange(waiters_, {})) {
    if (!is_served(waiter.need, replica.update)) {
      if (waiter.need.exact && replica.update > waiter.need.least) miss(waiter, actions);
      if (waiter.asked == from) waiter.asked = Rank{-1};  // It was asked for another one besides.
      waiting.push_back(waiter);
    } else if (waiter.node == self_) {
      started_.insert(waiter.rank);
      returning_.erase(waiter.rank);
      actions.emplace_back(Give{waiter.rank, replica});
    } else {
      elsewhere.insert(waiter.node);
    }
  }
  waiters_ = std::move(waiting);
  forget_refused();
  none_.clear();
  due_.reset();
  if (!waiters_.empty()) due_ = Instant::min();
  last_donor_ = Rank{-1};
  elsewhere.erase(self_);
  for (const NodeId node : elsewhere) actions.emplace_back(Send{node, from, replica});
  return actions;
}

}  // namespace paceline::cluster
