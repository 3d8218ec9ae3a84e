#pragma once

#include "algorithms/job/worker_start.h"
#include "runtime/base/result.h"

namespace paceline {

namespace train {

using job::WorkerStart;

/// Runs the training function (`start.call`, whose object is the Worker) as one worker of a job, to its end. A
/// WorkerMain: `cancelled` is a NaN loss or that the agent is gone.
Result<void> run_worker(const WorkerStart& start);

}  // namespace train
}  // namespace paceline
