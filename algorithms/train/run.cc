#include "paceline/run.h"

#include "algorithms/job/launch.h"
#include "algorithms/train/worker_main.h"
#include "runtime/base/json.h"

namespace paceline {
namespace {

Result<void> run_erased(void (*function)(), const job::WorkerStart& start) {
  return train::run_worker(reinterpret_cast<void (*)(Worker&)>(function), start);
}

}  // namespace

RunResult run(void (*train)(Worker&), const RunOptions& options) {
  const nlohmann::json json{{"workers", options.workers},
                            {"strategy", options.strategy},
                            {"epochs", options.epochs},
                            {"batch", options.batch},
                            {"accumulate", options.accumulate},
                            {"samples", options.samples},
                            {"evaluate_every_epochs", options.evaluate_every_epochs},
                            {"optimizer_state", options.optimizer_state},
                            {"buffers", options.buffers},
                            {"target", options.target},
                            {"seed", options.seed},
                            {"resume", options.resume}};
  return job::launch(run_erased, reinterpret_cast<void (*)()>(train), json.dump());
}

}  // namespace paceline
