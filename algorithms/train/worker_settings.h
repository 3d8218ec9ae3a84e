#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "algorithms/train/straggler.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace paceline::train {

/// What becomes of the optimiser's state where models are averaged.
enum class OptimizerState { keep, reset, average };

/// What a worker reads of its job's JSON; unknown keys are others' business.
struct WorkerSettings {
  std::int32_t workers = 1;
  std::string strategy;
  std::int64_t batch = 32;
  std::int64_t samples = 0;  ///< Of an epoch; 0: the size of the training set.
  double epochs = 1;
  double evaluate_every_epochs = 1;  ///< 0: at the end only.
  std::uint64_t seed = 1;
  std::int64_t early_stopping = 0;
  std::string run_directory;                      ///< Empty: no checkpoints.
  std::string resume;                             ///< Checkpoint file or run directory; empty: start afresh.
  std::optional<OptimizerState> optimizer_state;  ///< Nothing: the strategy's own.
  bool average_buffers = true;                    ///< Else each worker keeps its own.
  SlowWorker slow;                                ///< "slow": "3:4x", else PACELINE_SLOW.
  RandomDelay straggle;                           ///< "straggle": "1:40ms", else PACELINE_STRAGGLE.

  /// Where this run's checkpoint is written by evaluations, and between them; empty without a run directory.
  std::string checkpoint_path() const;
  std::string fresh_checkpoint_path(Rank writer) const;
};

/// `invalid` names the key, its value and what it should be.
Result<WorkerSettings> parse_worker_settings(std::string_view json);

}  // namespace paceline::train
