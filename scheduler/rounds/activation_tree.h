#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/ids.h"

namespace paceline::scheduler {

/// Where `self` forwards an activation that started at `root` among `nodes` agents: a binomial tree of nodes-1 messages
/// and depth ceil(log2 nodes). Power of two: over the bits above the one that it came by (self XOR 2^k). Else the same
/// on virtual ranks v = (self - root) mod nodes: v -> v + 2^k for 2^k > v. Empty if root or self are out of range.
/// Source: WAGMA-SGD, section 3 (Fig. 1); the virtual ranks are ours.
std::vector<NodeId> activation_children(NodeId root, NodeId self, std::int32_t nodes);

}  // namespace paceline::scheduler
