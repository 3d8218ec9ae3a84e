#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/native/stack.h"
#include "runtime/base/result.h"

namespace paceline::cli {

/// The worker of this number, id, or actor's name, out of the head's answer to `status` with `workers`. `machine`: this
/// one's, as agents call theirs (runtime/process/this_machine.h). `not_found`: none, or it has no process yet;
/// `invalid`: several, or it runs elsewhere. Pure.
Result<nlohmann::json> worker_found(const nlohmann::json& status, const std::string& wanted,
                                    std::optional<std::int64_t> node, const std::string& machine);

std::string stack_text(const nlohmann::json& worker, const std::vector<ThreadStack>& stacks);
nlohmann::json stack_json(const nlohmann::json& worker, const std::vector<ThreadStack>& stacks);

}  // namespace paceline::cli
