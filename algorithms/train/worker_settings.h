#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "algorithms/job/made_delays.h"
#include "algorithms/job/options.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace paceline::train {

/// What becomes of the optimiser's state where models are averaged.
enum class OptimizerState { keep, reset, average };

/// What a worker reads of its job's JSON.
struct WorkerSettings {
  job::Options options;
  std::optional<OptimizerState> optimizer_state{};  ///< Nothing: the strategy's own.
  bool average_buffers = true;                      ///< Else each worker keeps its own.
  job::SlowWorkers slow{};                          ///< Of `--slow`, else PACELINE_SLOW.
  job::RandomDelay straggle{};                      ///< Of `--straggle`, else PACELINE_STRAGGLE.

  /// Where this run's checkpoint is written by evaluations, and between them; empty without a run directory.
  std::string checkpoint_path() const;
  std::string fresh_checkpoint_path(Rank writer) const;
};

/// `invalid` names the option, or the variable, its value and what it should be.
Result<WorkerSettings> parse_worker_settings(std::string_view json);

}  // namespace paceline::train
