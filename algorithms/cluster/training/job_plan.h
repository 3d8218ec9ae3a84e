#pragma once

#include <cstdint>

#include "algorithms/cluster/training/job_settings.h"
#include "scheduler/shell/workplace.h"

namespace paceline::cluster {

/// How long a job is, as its first worker says (docs/adr/0003-the-workers-say-how-long-the-job-is.md).
struct JobPlan {
  std::int64_t first = 0;           ///< Update that it begins, or goes on, with.
  std::int64_t updates = 0;         ///< Where it ends.
  std::int64_t evaluate_every = 0;  ///< 0: at the end only; below: never.
  std::int64_t samples = 0;         ///< Of the data set; 0: there is none.
  std::int64_t batch = 1;           ///< Samples of a mini-batch.
  std::int64_t epoch = 0;           ///< Within which it begins,
  std::int64_t epoch_end = 0;       ///< and the first mini-batch that is of the next one.
  std::int64_t left = 0;            ///< Samples of that epoch.
};

/// `invalid`: there is nothing to do.
Result<JobPlan> checked_plan(JobPlan plan);

/// What the strategy's coordinator is told, with the recorded decisions where the job is a replay. `invalid`:
/// those are of another job.
Result<scheduler::JobOptions> averaging_options(const JobSettings& settings, const JobPlan& plan);

}  // namespace paceline::cluster
