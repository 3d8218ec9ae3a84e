#pragma once

#include <string>

#include "algorithms/simulate/cost.h"
#include "algorithms/simulate/job.h"
#include "runtime/base/result.h"

namespace paceline::cli {

/// `invalid` if it would take very long or much memory and `yes` does not say that this is wanted.
Result<void> check_cost(const simulate::Cost& cost, bool yes);

/// Simulates a job, which has a `problem`; on stderr progress under `label`, once it takes longer than two seconds.
Result<simulate::Outcome> simulate_one(simulate::Job& job, const std::string& label);

}  // namespace paceline::cli
