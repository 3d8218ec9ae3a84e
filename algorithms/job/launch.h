#pragma once

#include <string>

#include "algorithms/job/worker_start.h"
#include "paceline/run_result.h"

namespace paceline::job {

/// The driver's part of a job: finds the cluster, lets the flags of `paceline run` override `options_json`, creates the
/// workers (actors that run `main` with `function`), submits the job, shows progress and returns its result. Prints
/// errors; throws nothing. Keys of `options_json`: workers, strategy, accumulate, seed, target, and whatever the
/// workers read.
RunResult launch(WorkerMain main, void (*function)(), const std::string& options_json);

}  // namespace paceline::job
