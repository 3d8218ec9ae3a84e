#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace paceline::cli {

/// The head's answer to `status` as text: nodes, detached actors, jobs, the jobs' workers, and who waits for whom.
std::string status_text(const nlohmann::json& status);
/// The actors of it: a table, and an object a line.
std::string actors_text(const nlohmann::json& status);
std::string actors_json(const nlohmann::json& status);
/// Nodes that have not answered.
std::vector<std::string> silent_nodes(const nlohmann::json& status);

}  // namespace paceline::cli
