#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/base/result.h"

namespace paceline::cli {

/// All that the head's answer to `status` (with all actors and workers) says of the actor of this name, or with this
/// id: its row, as `paceline list actors --json` has it, and of its worker `worker`, `worker_state`, `awaited`,
/// `waits_for` and `waits_s`. `not_found`, with the names that there are; `invalid`, with their ids, where several have
/// the name. Pure.
Result<nlohmann::json> actor_found(const nlohmann::json& status, const std::string& name_or_id);
/// For people, a line a field.
std::string actor_text(const nlohmann::json& actor);

}  // namespace paceline::cli
