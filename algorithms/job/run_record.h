#pragma once

#include "actors/protocol.h"
#include "runtime/base/json.h"

namespace paceline::job {

/// What a run depends on besides its options, for its configuration.json.
nlohmann::json environment_record();
/// What was run, as the process's `run`-th, for `paceline replay`. Takes "script", what `paceline run` was given, out
/// of the options.
nlohmann::json program_record(const actors::Executable& executable, nlohmann::json& options, int run);

}  // namespace paceline::job
