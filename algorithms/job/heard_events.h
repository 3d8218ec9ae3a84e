#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

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
  /// Whether its like has come from another node, too, which may be lost: the next leader tells the newest evaluation,
  /// and why it ends the job, again, since nobody knows whether they had come; and all tell of a change of strategy.
  bool is_said_again(const nlohmann::json& event);
  /// A list of [node, number]: the last that was heard of each, as the head is told (algorithms/cluster/head.h, drive).
  nlohmann::json list() const;

 private:
  std::map<NodeId, std::uint64_t> last_;
  std::int64_t evaluated_ = 0;  ///< Updates that were done at the last evaluation,
  std::int64_t changed_ = 0;    ///< and at the last change.
  std::string stopping_;        ///< Why the job ends.
};

}  // namespace paceline::job
