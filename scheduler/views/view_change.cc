#include "scheduler/views/view_change.h"

#include <algorithm>
#include <string>
#include <utility>

namespace paceline::scheduler {

ViewChange::ViewChange(NodeId self, std::set<NodeId> members) : self_(self), members_(std::move(members)) {
  members_.insert(self);
}

ViewChange::Actions ViewChange::on_lost(NodeId node) {
  Actions out;
  if (node == self_ || members_.erase(node) == 0) return out;
  lost_.insert(node);
  for (const NodeId member : members_)
    if (member != self_) out.push_back(Flush{member, lost_});
  auto installed = install_if_flushed();
  out.insert(out.end(), installed.begin(), installed.end());
  return out;
}

ViewChange::Actions ViewChange::on_flushed(NodeId from, const std::set<NodeId>& lost) {
  flushed_[from].insert(lost.begin(), lost.end());
  return install_if_flushed();
}

ViewChange::Actions ViewChange::install_if_flushed() {
  const auto has_flushed = [this](NodeId member) {
    const auto& flushed = flushed_[member];
    return member == self_ || std::includes(flushed.begin(), flushed.end(), lost_.begin(), lost_.end());
  };
  Actions out;
  if (!std::all_of(members_.begin(), members_.end(), has_flushed)) return out;
  for (const NodeId node : lost_)
    if (installed_.insert(node).second) out.push_back(Install{node});
  return out;
}

std::string ViewChange::fingerprint() const {
  std::string text;
  const auto add = [&text](char what, const std::set<NodeId>& nodes) {
    text += what;
    for (const NodeId node : nodes) text += to_string(node) + ",";
  };
  add('m', members_);
  add('i', installed_);
  for (const auto& [from, lost] : flushed_) add(static_cast<char>('A' + from.value), lost);
  return text;
}

}  // namespace paceline::scheduler
