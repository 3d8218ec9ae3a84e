#include "paceline/run.h"

#include <nlohmann/json.hpp>

#include "algorithms/train/launch.h"

namespace paceline {

RunResult run(void (*train)(Worker&), const RunOptions& options) {
  const nlohmann::json json{{"workers", options.workers},
                            {"strategy", options.strategy},
                            {"epochs", options.epochs},
                            {"batch", options.batch},
                            {"accumulate", options.accumulate},
                            {"samples", options.samples},
                            {"evaluate_every_epochs", options.evaluate_every_epochs},
                            {"target", options.target},
                            {"seed", options.seed},
                            {"resume", options.resume}};
  return train::detail::launch(train, json.dump());
}

}  // namespace paceline
