#pragma once

#include <string>

#include "paceline/run.h"

namespace paceline::train::detail {

/// The driver's part of a job: finds or starts a cluster, lets the flags of `paceline run` override `options_json`,
/// creates the workers, submits the job, shows progress and returns its result. Prints errors; throws nothing.
/// Keys of `options_json`: the fields of RunOptions.
RunResult launch(void (*train)(Worker&), const std::string& options_json);

}  // namespace paceline::train::detail
