#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace paceline::job {

/// What an option of a job has to be, where `value` is not that: "give a number from 1 to 4096"; empty where it is. One
/// table says it for the flags of `paceline run`, for RunOptions and for whatever submits a job to the cluster.
std::string unfit(std::string_view option, const nlohmann::json& value);
/// A value for such a message: a text without quotes, NaN and the infinities, too, and no more than the beginning.
std::string shown(const nlohmann::json& value);

/// All of a job's options, as the driver starts with them and the head takes them: each fits, so that whoever reads
/// them later can rely on it. Those of other names are the program's own.
Result<void> check_options(const nlohmann::json& options);

}  // namespace paceline::job
