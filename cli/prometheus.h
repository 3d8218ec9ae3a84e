#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace paceline::cli {

/// The head's answer to `status` in Prometheus' text format (version 0.0.4): nodes, jobs (labels `job`, `strategy`),
/// what is evaluated and logged in them (also `name`) and their workers (also `worker`, `node`). What is missing, or of
/// another type than expected, is left out.
std::string prometheus_text(const nlohmann::json& status);

}  // namespace paceline::cli
