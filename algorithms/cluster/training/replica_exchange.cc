#include "algorithms/cluster/training/replica_exchange.h"

#include <algorithm>
#include <utility>

namespace paceline::cluster {

ReplicaExchange::ReplicaExchange(NodeId self, const std::vector<NodeId>& node_of)
    : self_(self), first_(node_of.front()), workers_(node_of.size()), others_(node_of.begin(), node_of.end()) {
  others_.erase(self);
}

bool ReplicaExchange::waits(Rank rank) const {
  return std::any_of(waiters_.begin(), waiters_.end(), [&](const Waiter& w) { return w.rank == rank; });
}

ReplicaExchange::Actions ReplicaExchange::on_wanted(Rank rank, NodeId from, std::int64_t least, const Donors& donors,
                                                    Instant now) {
  const bool first = from == self_ && !started_.contains(rank);
  if (first && start_) {
    started_.insert(rank);
    return {Give{rank, *start_}};
  }
  std::erase_if(waiters_, [&](const Waiter& w) { return w.rank == rank; });  // It asks again.
  waiters_.push_back({rank, from, least});
  return first ? Actions{} : ask(donors, now);  // The start is on its way from rank 0.
}

ReplicaExchange::Actions ReplicaExchange::on_none(NodeId from, const Donor& furthest, const Donors& donors,
                                                  Instant now) {
  if (!others_.contains(from) || waiters_.empty()) return {};
  none_[from] = furthest;
  return ask(donors, now);
}

ReplicaExchange::Actions ReplicaExchange::on_node_gone(NodeId node, const Donors& donors, Instant now) {
  others_.erase(node);
  none_.erase(node);
  std::erase_if(waiters_, [node](const Waiter& w) { return w.node == node; });
  return due() ? ask(donors, now) : Actions{};
}

ReplicaExchange::Actions ReplicaExchange::ask(const Donors& donors, Instant now) {
  std::optional<Donor> best;
  bool anybody = false;
  for (const Donor& donor : donors) {
    if (waits(donor.rank)) continue;
    anybody = true;
    if (donor.rank != last_donor_ && (!best || donor.step > best->step)) best = donor;
  }
  const auto serves = [&](const Waiter& w) { return best && w.least <= best->step; };
  if (std::any_of(waiters_.begin(), waiters_.end(), serves)) {
    due_ = now + kPatience;
    last_donor_ = workers_ > 2 ? best->rank : Rank{-1};
    return {Capture{best->rank}};
  }
  last_donor_ = Rank{-1};
  Actions actions;
  const Donor furthest = furthest_waiting(donors);
  if (!anybody) refuse_others(actions, furthest);
  if (none_.size() < others_.size()) {
    auto asked = ask_next_node(now);
    actions.insert(actions.end(), asked.begin(), asked.end());
    return actions;
  }
  if (!anybody && is_furthest(furthest)) {
    std::erase_if(waiters_, [&](const Waiter& w) { return w.rank == furthest.rank; });
    actions.emplace_back(GoOn{furthest.rank});
  }
  none_.clear();
  due_ = now + (others_.empty() ? kLook : kPatience);
  return actions;
}

ReplicaExchange::Actions ReplicaExchange::ask_next_node(Instant now) {
  const auto next = std::find_if(others_.begin(), others_.end(), [this](NodeId node) { return !none_.contains(node); });
  Actions actions;
  for (const Waiter& waiter : waiters_)
    if (waiter.node == self_) actions.emplace_back(AskNode{*next, waiter.rank, waiter.least});
  due_ = now + (actions.empty() ? kLook : kPatience);
  return actions;
}

void ReplicaExchange::refuse_others(Actions& actions, const Donor& furthest) {
  std::set<NodeId> asking;
  for (const Waiter& waiter : waiters_) asking.insert(waiter.node);
  asking.erase(self_);
  for (const NodeId node : asking) actions.emplace_back(SendNone{node, furthest});
  std::erase_if(waiters_, [this](const Waiter& w) { return w.node != self_; });
}

/// Of the local workers that ask, and that have begun with what all began with.
ReplicaExchange::Donor ReplicaExchange::furthest_waiting(const Donors& donors) const {
  Donor furthest;
  for (const Donor& donor : donors)
    if (waits(donor.rank) && started_.contains(donor.rank) && (furthest.rank.value < 0 || donor.step > furthest.step))
      furthest = donor;
  return furthest;
}

bool ReplicaExchange::is_furthest(const Donor& own) const {
  return own.rank.value >= 0 && std::none_of(none_.begin(), none_.end(), [&](const auto& entry) {
           const Donor& other = entry.second;
           return other.rank.value >= 0 && (other.step > own.step || (other.step == own.step && other.rank < own.rank));
         });
}

ReplicaExchange::Actions ReplicaExchange::on_captured(Rank from, const Replica& replica) {
  std::set<NodeId> elsewhere;
  if (from.value == 0 && !start_) {
    start_ = replica;
    started_.insert(from);
    if (first_ == self_) elsewhere = others_;
  }
  Actions actions;
  for (const Waiter& waiter : std::exchange(waiters_, {})) {
    if (waiter.least > replica.update) {
      waiters_.push_back(waiter);
    } else if (waiter.node == self_) {
      started_.insert(waiter.rank);
      actions.emplace_back(Give{waiter.rank, replica});
    } else {
      elsewhere.insert(waiter.node);
    }
  }
  none_.clear();
  due_.reset();
  if (!waiters_.empty()) due_ = Instant::min();
  last_donor_ = Rank{-1};
  elsewhere.erase(self_);
  for (const NodeId node : elsewhere) actions.emplace_back(Send{node, from, replica});
  return actions;
}

}  // namespace paceline::cluster
