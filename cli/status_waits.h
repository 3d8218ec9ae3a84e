#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace paceline::cli {

/// Of the head's answer to `status`: which tasks wait for workers and who holds the cpus that they could have, and
/// which workers wait for results, a line each. Empty where nothing waits.
std::string waits_text(const nlohmann::json& status);

}  // namespace paceline::cli
