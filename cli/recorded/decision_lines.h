#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "runtime/base/ids.h"
#include "scheduler/record/decision.h"

namespace paceline::recorded {

/// A decision with the fields that count for its kind: {"node", "kind", "worker", "version", "group", "from", "took_s",
/// "at_s": since `start`, "contributions": [{"worker", "iteration", "batches"}]}, those without an iteration having had
/// nothing.
nlohmann::json decision_json(NodeId node, const scheduler::Decision& decision, Instant start);
/// The same, for people: "node 0   1.250 s  sealed  version 7  group 1  fresh 0 2  late 1 (6)  nothing 3".
std::string decision_line(NodeId node, const scheduler::Decision& decision, Instant start);

}  // namespace paceline::recorded
