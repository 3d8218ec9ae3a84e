#pragma once

#include <utility>
#include <vector>

#include "algorithms/simulate/job.h"

namespace paceline::simulate {

/// What a simulated job came to, in the figures that strategies are compared by. Shares are of 1.
struct Figures {
  double virtual_s = 0;
  double batches = 0;  ///< Mini-batches that counted, of all workers.
  double batches_per_s = 0;
  double share_done = 0;  ///< Of the mini-batches that all workers could have done in the job's steps.
  double waited = 0;      ///< Share of all workers' time.
  double late = 0;        ///< Share of the rows that are not fresh.
  double loss = 0;   ///< Objective above `lowest`, at the summary's model; after failures at the mean of the living.
  double apart = 0;  ///< Root of the mean square distance between a worker's last model and the mean of those.
  double messages = 0;
  double bytes = 0;
  std::vector<std::pair<double, double>>
      curve;  ///< Time in seconds, objective at the workers' mean model above `lowest`.
};

/// `batches_per_step`: how many mini-batches stand behind one of a row's `batches_done`, and how many behind a step.
struct BatchesPerStep {
  double of_row = 1, of_step = 1;
};

/// Figures of `outcome`, whose job has `steps` steps of `problem`, all workers of which start at `start`; `lowest`: the
/// smallest value of the objective.
Figures figures_of(const Job& job, const Outcome& outcome, double lowest, BatchesPerStep batches);
inline constexpr int kCurvePoints = 200;

/// Where the mean of the workers' quadratics is lowest.
Vector optimum(const std::vector<Quadratic>& workers);

}  // namespace paceline::simulate
