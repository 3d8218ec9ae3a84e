#include "scheduler/views/view.h"

#include <algorithm>
#include <utility>

namespace paceline::scheduler {

View::View(NodeId self, std::vector<NodeId> node_of) : self_(self), node_of_(std::move(node_of)) {}

std::vector<Rank> View::ranks_on(NodeId node) const {
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < node_of_.size(); ++i)
    if (node_of_[i] == node) ranks.emplace_back(static_cast<std::int32_t>(i));
  return ranks;
}

std::set<NodeId> View::others() const {
  auto nodes = this->nodes();
  nodes.erase(self_);
  return nodes;
}

std::set<NodeId> View::nodes() const {
  std::set<NodeId> nodes(node_of_.begin(), node_of_.end());
  nodes.insert(self_);
  std::erase_if(nodes, [this](NodeId node) { return without_.contains(node); });
  return nodes;
}

NodeId View::leader() const {
  const auto is_lower = [this](NodeId a, NodeId b) {
    return std::pair(is_without(a), a) < std::pair(is_without(b), b);
  };
  return *std::min_element(node_of_.begin(), node_of_.end(), is_lower);
}

std::optional<NodeId> View::giver(NodeId from, std::int32_t of) const {
  const NodeId node = of < 0 ? from : NodeId{of};
  if (node == self_ || without_.contains(node) || ranks_on(node).empty()) return std::nullopt;
  return node;
}

}  // namespace paceline::scheduler
