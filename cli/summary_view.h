#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace paceline::cli {

/// Of the head's answer to `status` (with all actors, workers and tasks): how many nodes, workers, actors and jobs
/// there are, by state, actors also by class, cpus, and how many owners want how many workers for tasks. Pure.
nlohmann::json summary_of(const nlohmann::json& status);
std::string summary_text(const nlohmann::json& summary);

}  // namespace paceline::cli
