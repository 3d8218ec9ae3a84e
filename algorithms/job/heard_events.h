#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>

#include "runtime/base/ids.h"

namespace paceline::job {

/// What a driver has heard of a job's nodes, by the numbers of what they tell: nothing counts twice, and what was lost
/// on its way, with an agent, is to be told again. Sans I/O.
class HeardEvents {
 public:
  enum class Event {
    next,
    known,   ///< It came through the agent before, too.
    missed,  ///< Not this one, but one before it, which its node can tell again.
  };

  /// `number`: of all that this node has told, from 1; the head's have none, 0. `oldest`: that the node can tell again.
  Event on_event(NodeId from, std::uint64_t number, std::uint64_t oldest);
  /// A list of [node, number]: the last that was heard of each, as the head is told (algorithms/cluster/head.h, drive).
  nlohmann::json list() const;

 private:
  std::map<NodeId, std::uint64_t> last_;
};

}  // namespace paceline::job
