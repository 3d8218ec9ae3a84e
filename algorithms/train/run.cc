#include "paceline/run.h"

#include "algorithms/job/launch.h"
#include "algorithms/job/metric.h"
#include "algorithms/train/worker_main.h"
#include "runtime/base/json.h"

namespace paceline {

RunResult run(void (*train)(Worker&), const RunOptions& options) { return run<void (&)(Worker&)>(*train, options); }

RunResult detail::run(TrainingCall call, const RunOptions& options) {
  nlohmann::json json{{"workers", options.workers},
                      {"strategy", options.strategy},
                      {"epochs", options.epochs},
                      {"batch", options.batch},
                      {"accumulate", options.accumulate},
                      {"samples", options.samples},
                      {"evaluate_every_epochs", options.evaluate_every_epochs},
                      {"checkpoint_every_s", options.checkpoint_every_s},
                      {"optimizer_state", options.optimizer_state},
                      {"buffers", options.buffers},
                      {"metric", job::to_json(options.metric)},
                      {"target", options.target ? nlohmann::json(*options.target) : nlohmann::json(nullptr)},
                      {"early_stopping", options.early_stopping},
                      {"keep_checkpoints", options.keep_checkpoints},
                      {"seed", options.seed},
                      {"resume", options.resume}};
  if (!call.arguments) return job::refuse(call.arguments.error());
  return job::launch({train::run_worker, call.thunk, *std::move(call.arguments)}, std::move(json));
}

}  // namespace paceline
