#include "paceline/run.h"

#include "algorithms/job/launch.h"
#include "algorithms/job/options.h"
#include "algorithms/train/worker_main.h"
#include "runtime/base/json.h"

namespace paceline {

RunResult run(void (*train)(Worker&), const RunOptions& options) { return run<void (&)(Worker&)>(*train, options); }

RunResult detail::run(TrainingCall call, const RunOptions& options) {
  if (!call.arguments) return job::refuse(call.arguments.error());
  return job::launch({train::run_worker, call.thunk, *std::move(call.arguments)}, job::to_json(options));
}

}  // namespace paceline
