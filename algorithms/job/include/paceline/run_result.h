#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace paceline {

/// One evaluation of the averaged model. `clock_s` is training time, in seconds: it stands still during evaluations.
struct Evaluation {
  std::int64_t update = 0;  ///< Updates that were done.
  double clock_s = 0;
  double value = 0;  ///< What the function that was given to `evaluate` returned.
  double loss = 0;   ///< Training loss of the last update, averaged over its workers.
};

/// The training loss at one time; four a second are kept.
struct TrainingLoss {
  std::int64_t update = 0;
  double clock_s = 0;
  double value = 0;
};

/// How a job ended.
struct RunResult {
  int code = 1;  ///< 0 done, 1 failed, 2 usage, 130 interrupted.
  /// Last evaluated metric of the averaged model; NaN if none was.
  double metric = std::numeric_limits<double>::quiet_NaN();
  std::string json;               ///< The `result` event, as `paceline run --json` prints it.
  std::string run_directory;      ///< With logs, metrics and checkpoint; empty if the job did not begin.
  std::string checkpoint;         ///< The averaged model and all that a run can go on from; empty if there is none.
  std::string best_checkpoint{};  ///< The same of the best evaluation; empty if there was none.
  std::int64_t updates = 0;
  std::int64_t samples = 0;                  ///< Whose gradients counted.
  double train_s = 0;                        ///< Training time, seconds.
  std::optional<double> time_to_target_s{};  ///< When an evaluation first reached the target.
  std::vector<Evaluation> evaluations{};     ///< In order.
  std::optional<Evaluation> best{};          ///< Of these.
  std::vector<TrainingLoss> losses{};        ///< In order, as the node that leads told them.
  std::vector<std::int32_t> lost{};          ///< Workers that left before the end.

  /// For main: the command line's exit statuses.
  int exit_code() const { return code; }
};

}  // namespace paceline
