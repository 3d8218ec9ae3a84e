#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace paceline::job {

/// What the metadata of a checkpoint has under "paceline".
inline constexpr std::string_view kCheckpointFormat = "paceline-replica-1";

/// Whether a job can go on from `path`, a checkpoint or a run directory, as far as its header says it: what the workers
/// would find only after all has been started. Empty: nothing is resumed. `not_found`, `invalid`.
Result<void> check_resume(const std::string& path);

}  // namespace paceline::job
