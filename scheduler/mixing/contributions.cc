#include "scheduler/mixing/contributions.h"

#include <algorithm>

namespace paceline::scheduler {

void Contributions::release(Rank rank, Version v) {
  auto released = held_.extract({rank, v});
  if (!alike_ || released.empty()) return;
  const NodeId of = view_.node_of(rank);
  for (const NodeId node : view_.others())
    if (of != self_ && node != of && may_lack(node, v)) {
      used_.insert(std::move(released));
      return;
    }
}

/// A worker that contributes to v has mixed all before.
void Contributions::on_given(Rank rank, Version v) {
  if (!alike_) return;
  Version& given = given_.try_emplace(view_.node_of(rank), v).first->second;
  given = std::max(given, v);
  forget_used();
}

/// An agent without a worker lacks nothing.
bool Contributions::may_lack(NodeId node, Version v) const {
  const auto left = engine_.left();
  if (std::none_of(left.begin(), left.end(), [&](Rank rank) { return view_.lives_on(rank, node); })) return false;
  const auto given = given_.find(node);
  return given == given_.end() || given->second <= v;
}

void Contributions::forget_used() {
  const auto others = view_.others();
  std::erase_if(used_, [&](const auto& used) {
    return std::none_of(others.begin(), others.end(), [&](NodeId node) {
      return !view_.lives_on(used.first.first, node) && may_lack(node, used.first.second);
    });
  });
}

void Contributions::pass_on(NodeId lost, NodeId to, const Send& send) const {
  if (!alike_) return;
  for (const auto* contributions : {&used_, &held_})
    for (const auto& [key, contribution] : *contributions)
      if (view_.lives_on(key.first, lost) && may_lack(to, key.second)) send(key.first, key.second, contribution);
}

}  // namespace paceline::scheduler
