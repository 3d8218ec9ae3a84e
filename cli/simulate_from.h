#pragma once

#include "algorithms/simulate/fit.h"
#include "cli/recorded/run_history.h"
#include "cli/recorded/run_trace.h"
#include "cli/simulate_options.h"
#include "runtime/base/result.h"

namespace paceline::cli {

/// `paceline simulate --from RUN`: fits a model to a run that has ended, says how far it is from that run, and prints
/// what the run would have taken with another strategy, more workers, or without a slow one. `not_found`, `invalid`:
/// there is no such run, or none that can be fitted, or a flag does not go with it.
Result<void> simulate_from(const SimulateFlags& flags);

/// The part of it that knows what a run records. `invalid`: it has not ended or failed, workers left, or its trace is
/// missing.
Result<simulate::Measured> measured_of(const recorded::RunHistory& run, const std::optional<recorded::RunTrace>& trace);

}  // namespace paceline::cli
