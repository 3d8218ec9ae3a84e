#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/cluster.h"
#include "cli/process.h"
#include "runtime/base/result.h"

namespace paceline::cli {

/// Runs a script's driver once. `overrides`: the job's options that go before the script's own; they are written into
/// the run directory, which is created.
Result<Ended> run_driver(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                         const Place& place, nlohmann::json overrides, const std::filesystem::path& directory);

/// The command's exit status. A driver that was killed says nothing itself: then we do.
int exit_code(const Ended& ended, const std::filesystem::path& program);

/// What the driver left in its run directory; null if nothing.
nlohmann::json read_result(const std::filesystem::path& directory);

}  // namespace paceline::cli
