#pragma once

#include "algorithms/job/worker_start.h"
#include "runtime/base/result.h"

namespace paceline {

class Worker;

namespace train {

using job::WorkerStart;

/// Runs the training function as one worker of a job, to its end. `cancelled`: the job could not go on and knows
/// already (NaN loss, agent gone); any other error is an exception of the user's function, its text unchanged, and the
/// job has been told that this worker failed. Throws nothing.
Result<void> run_worker(void (*train)(Worker&), const WorkerStart& start);

}  // namespace train
}  // namespace paceline
