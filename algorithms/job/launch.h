#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "algorithms/job/worker_start.h"
#include "paceline/run_result.h"

namespace paceline::job {

/// What a job's workers run.
struct Program {
  WorkerMain main;
  actors::Thunk call = nullptr;    ///< The script's, for `main`; null if it takes nothing.
  std::vector<Bytes> arguments{};  ///< Of `call`.
};

/// The driver's part of a job: finds the cluster, lets the flags of `paceline run` override `options`, checks them
/// (options.h), creates the workers (actors that run `program`), submits the job, shows progress and returns its
/// result. Prints errors; throws TaskError within a worker only. A process has one run at a time; each has a run
/// directory of its own.
RunResult launch(Program program, nlohmann::json options);

/// The result of a job that cannot be started; the error is printed.
RunResult refuse(const Error& error);

}  // namespace paceline::job
