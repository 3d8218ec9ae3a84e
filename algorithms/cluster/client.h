#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/base/result.h"

namespace paceline::cluster {

/// Asks the cluster whose runtime directory is `cluster`; the verbs are the head's (head.h). `disconnected`,
/// `timed_out` when it does not answer.
Result<nlohmann::json> ask(const std::filesystem::path& cluster, const std::string& verb, const nlohmann::json& body);

}  // namespace paceline::cluster
