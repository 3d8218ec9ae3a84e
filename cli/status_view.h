#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace paceline::cli {

/// The head's answer to `status` as text: nodes, tasks and calls that wait, detached actors, jobs, the jobs' workers,
/// and who waits for whom.
std::string status_text(const nlohmann::json& status);

}  // namespace paceline::cli
