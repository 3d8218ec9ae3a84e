#include "scheduler/rounds/used_partials.h"

#include <algorithm>

namespace paceline::scheduler {

/// One other agent has all that it needs: its own, and this one's.
void UsedPartials::keep(Key key, const std::vector<NodeId>& others, std::map<NodeId, RemotePartial> partials) {
  if (others.size() < 2) return;
  used_.insert_or_assign(key, Used{{others.begin(), others.end()}, std::move(partials)});
  forget();
}

void UsedPartials::on_given(NodeId node, Version v) {
  Version& given = given_.try_emplace(node, v).first->second;
  given = std::max(given, v);
  forget();
}

void UsedPartials::on_lost(NodeId node) {
  lost_.insert(node);
  forget();
}

bool UsedPartials::has_executed(NodeId node, std::int64_t version) const {
  const auto given = given_.find(node);
  return lost_.contains(node) || (given != given_.end() && given->second.value > version);
}

/// What nobody can lack: an agent has its own.
void UsedPartials::forget() {
  for (auto it = used_.begin(); it != used_.end();) {
    const std::int64_t version = it->first.first;
    auto& [not_executed, partials] = it->second;
    std::erase_if(not_executed, [&](NodeId node) { return has_executed(node, version); });
    std::erase_if(partials, [&waiting = not_executed](const auto& of) {
      return waiting.empty() || (waiting.size() == 1 && waiting.contains(of.first));
    });
    it = partials.empty() ? used_.erase(it) : std::next(it);
  }
}

void UsedPartials::pass_on(NodeId lost, NodeId to, const std::function<void(Key, const RemotePartial&)>& send) const {
  for (const auto& [key, used] : used_)
    if (const auto of = used.partials.find(lost); of != used.partials.end() && used.not_executed.contains(to))
      send(key, of->second);
}

}  // namespace paceline::scheduler
