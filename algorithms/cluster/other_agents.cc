#include "algorithms/cluster/other_agents.h"

#include <algorithm>
#include <utility>

#include "actors/process_ids.h"

namespace paceline::cluster {

OtherAgents::Actions OtherAgents::on_nodes(std::int64_t epoch, const std::vector<Known>& nodes) {
  Actions out;
  epoch_ = epoch;
  known_.clear();
  for (const Known& entry : nodes) {
    known_.push_back(entry.node);
    if (entry.node.value < actors::kNodesMax) numbers_ = std::max(numbers_, entry.node.value + 1);
    has_.insert_or_assign(entry.node, entry.has);
    if (reachable_.contains(entry.node)) out.emplace_back(Reachable{entry.node, entry.has});
    const auto known = addresses_.find(entry.node);
    // Of two agents the one with the higher number connects. One that was started anew has another address.
    if (entry.node < self_ && (known == addresses_.end() || known->second != entry.address))
      connect(entry.node, entry.address, out);
  }
  tell_linked(out);
  return out;
}

void OtherAgents::connect(NodeId node, const std::string& address, Actions& out) {
  addresses_[node] = address;
  linked_.erase(node);
  cut_off_.erase(node);
  out.emplace_back(Connect{node, address});
}

OtherAgents::Actions OtherAgents::on_hello(NodeId node) {
  if (node.value < 0) return {};
  reachable_.insert(node);
  const auto has = has_.find(node);
  return has == has_.end() ? Actions{} : Actions{Reachable{node, has->second}};
}

OtherAgents::Actions OtherAgents::on_welcome(NodeId node) {
  Actions out;
  if (node.value >= 0 && linked_.insert(node).second) tell_linked(out);
  for (auto& action : on_hello(node)) out.push_back(std::move(action));
  return out;
}

OtherAgents::Actions OtherAgents::on_gone(NodeId node, const std::string& cause) {
  linked_.erase(node);
  reachable_.erase(node);
  gone_.insert(node);
  Actions out;
  const auto address = addresses_.extract(node);
  if (address.empty()) return out;
  connect(node, address.mapped(), out);
  cut_off_[node] = cause;
  return out;
}

std::optional<std::string> OtherAgents::cut_off(NodeId node) const {
  const auto cause = cut_off_.find(node);
  return cause == cut_off_.end() ? std::nullopt : std::optional(cause->second);
}

/// Nothing is asked of this cluster before each agent can be reached by each: the head waits for this word of all.
void OtherAgents::tell_linked(Actions& out) const {
  const bool all = std::all_of(known_.begin(), known_.end(),
                               [this](NodeId node) { return node >= self_ || linked_.contains(node); });
  if (epoch_ >= 0 && all) out.emplace_back(TellLinked{epoch_});
}

}  // namespace paceline::cluster
