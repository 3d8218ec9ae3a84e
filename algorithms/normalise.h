#pragma once

#include <cstdint>

#include "algorithms/strategy.h"

namespace paceline::algorithms {

/// How the gradients of a batch that some workers did not finish are combined (Non-blocking SGD; docs name the readings
/// a, b, d). Worker i contributes s_i, the sum of the mean gradients of the n_i <= N mini-batches that it completed;
/// the update's gradient is  result_scale * sum_i contribution_weight_i * s_i:
///
///   b (default)  (1/P) sum_i (n_i/N)   * mean_i      eta_i = eta n_i/N
///   a            (1/P) sum_i (n_i/N)^2 * mean_i      the paper's formulas to the letter
///   d            sum_i n_i * mean_i / sum_i n_i      weighted by samples
///
/// with mean_i = s_i/n_i. All give the plain mean over P*N mini-batches where every n_i = N.

/// Factor on s_i before it is summed. 1 for b and d.
inline double contribution_weight(Strategy::Normalise reading, std::int64_t completed, std::int64_t batches) {
  return reading == Strategy::Normalise::a ? static_cast<double>(completed) / static_cast<double>(batches) : 1.0;
}

/// Factor on the sum. `completed_total`: sum of n_i (only d looks at it; nobody completed anything: 0).
inline double result_scale(Strategy::Normalise reading, std::int64_t workers, std::int64_t batches,
                           std::int64_t completed_total) {
  if (reading == Strategy::Normalise::d) return completed_total > 0 ? 1.0 / static_cast<double>(completed_total) : 0.0;
  return 1.0 / (static_cast<double>(workers) * static_cast<double>(batches));
}

}  // namespace paceline::algorithms
