#include "cli/daemon/replica_exchange.h"

#include <algorithm>
#include <utility>

namespace paceline::daemon {

ReplicaExchange::ReplicaExchange(NodeId self, std::vector<NodeId> node_of, std::int32_t nodes)
    : self_(self), node_of_(std::move(node_of)), nodes_(nodes) {}

ReplicaExchange::Actions ReplicaExchange::on_wanted(Rank rank, NodeId from, std::int64_t least, const Donors& donors,
                                                    Instant now) {
  const bool first = from == self_ && !started_.contains(rank);
  if (first && start_) {
    started_.insert(rank);
    return {Give{rank, *start_}};
  }
  waiters_.push_back({rank, from, least});
  return first ? Actions{} : ask(donors, now);  // The start is on its way from rank 0.
}

ReplicaExchange::Actions ReplicaExchange::ask(const Donors& donors, Instant now) {
  std::optional<Donor> best;
  for (const Donor& donor : donors) {
    const bool waits =
        std::any_of(waiters_.begin(), waiters_.end(), [&](const Waiter& w) { return w.rank == donor.rank; });
    if (!waits && donor.rank != last_donor_ && (!best || donor.step > best->step)) best = donor;
  }
  const auto serves = [&](const Waiter& w) { return best && w.least <= best->step; };
  if (std::any_of(waiters_.begin(), waiters_.end(), serves)) {
    due_ = now + kPatience;
    last_donor_ = node_of_.size() > 2 ? best->rank : Rank{-1};
    return {Capture{best->rank}};
  }
  Actions actions;
  for (const Waiter& waiter : waiters_)
    if (nodes_ > 1 && waiter.node == self_)
      actions.emplace_back(AskNode{NodeId{(self_.value + 1) % nodes_}, waiter.rank, waiter.least});
  due_ = now + (actions.empty() ? kLook : kPatience);
  last_donor_ = Rank{-1};
  return actions;
}

ReplicaExchange::Actions ReplicaExchange::on_captured(Rank from, const Replica& replica) {
  std::set<NodeId> elsewhere;
  if (from.value == 0 && !start_) {
    start_ = replica;
    started_.insert(from);
    if (node_of_.front() == self_) elsewhere.insert(node_of_.begin(), node_of_.end());
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
  due_.reset();
  if (!waiters_.empty()) due_ = Instant::min();
  last_donor_ = Rank{-1};
  elsewhere.erase(self_);
  for (const NodeId node : elsewhere) actions.emplace_back(Send{node, from, replica});
  return actions;
}

}  // namespace paceline::daemon
