#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/simulate/job.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace paceline::simulate {

/// What was measured of a run, in seconds. A step is what a strategy calls an update: one mini-batch or several.
struct Measured {
  struct Step {
    std::int64_t step = 0;                  ///< From 0.
    double compute_s = 0;                   ///< Whatever made it long included, such as sleeping.
    bool abandoned = false;                 ///< `compute_s` is as far as it came (nonblocking).
    std::optional<double> answered_s = {};  ///< From the end of its computing until the averaging let it go on.
  };
  struct Worker {
    std::vector<Step> steps;
    double batches_done = 0;  ///< Mini-batches that it finished, those of abandoned steps included.
  };
  std::string strategy;
  std::int64_t steps = 0;
  std::int64_t batches = 1;  ///< Mini-batches a step.
  std::vector<Worker> workers;
};

/// A run as a model: how long each worker computes at each step, and what an averaging costs.
struct Fit {
  struct Worker {
    std::vector<double> of_step;  ///< What this step took; 0: it was not measured.
    std::vector<double> times;    ///< What is drawn from where it was not: all that were.
  };
  std::vector<Worker> workers;
  std::int64_t batches = 1;
  double exchange_s = 0;           ///< Of one of the ceil(log2 g) exchanges of an average of g workers.
  std::vector<Rank> guessed = {};  ///< They never finished a mini-batch: what they take is not known.
};

/// Fits the model.
///
/// A step that was abandoned would have taken longer than it did: one after the other, the longest first, such steps
/// take a time drawn from those that took longer (the redistribution to the right of Efron 1967, which gives the
/// estimate of Kaplan and Meier 1958). Where none did, it is that worker's time of its mini-batches in abandoned steps,
/// of which the one in flight counts as half done.
/// An average costs what the worker that it waited for last stood waiting, the median over all averages.
///
/// `invalid`: no steps, a worker without any, a trace that ends before 9 tenths of them, or a strategy whose decisions
/// depend on more than times.
Result<Fit> fit(const Measured& run);

/// What is to be simulated of a fitted run.
struct WhatIf {
  std::string strategy;
  std::int32_t workers = 1;  ///< Worker i is like worker i mod the measured ones; those beyond draw all their times.
  std::int64_t steps = 1;
  std::optional<Rank> mended = {};  ///< A measured worker that draws from the times of the median of the others.
};

/// A job of the same length whose problem is of no interest. `invalid`: the strategy cannot be parsed or cannot be
/// fitted, or there is no such worker, or no other.
Result<Job> job_of(const Fit& fit, const WhatIf& what);

}  // namespace paceline::simulate
