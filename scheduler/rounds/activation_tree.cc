#include "scheduler/rounds/activation_tree.h"

namespace paceline::scheduler {

std::vector<NodeId> activation_children(NodeId root, NodeId self, std::int32_t nodes) {
  std::vector<NodeId> children;
  if (root.value < 0 || self.value < 0 || root.value >= nodes || self.value >= nodes) return children;
  const bool power_of_two = (nodes & (nodes - 1)) == 0;
  const std::int64_t mine = power_of_two ? (self.value ^ root.value) : (self.value - root.value + nodes) % nodes;
  for (std::int64_t bit = 1; bit < nodes; bit <<= 1) {
    if (bit <= mine || mine + bit >= nodes) continue;
    const std::int64_t child = power_of_two ? (self.value ^ bit) : (mine + bit + root.value) % nodes;
    children.push_back(NodeId{static_cast<std::int32_t>(child)});
  }
  return children;
}

}  // namespace paceline::scheduler
