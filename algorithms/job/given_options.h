#pragma once

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace paceline::job {

/// The script's options, overridden by the flags of `paceline run` (a JSON file that PACELINE_RUN names), or by those
/// among the program's own arguments. `invalid`: a flag that cannot be.
Result<nlohmann::json> merged_options(nlohmann::json options);

}  // namespace paceline::job
