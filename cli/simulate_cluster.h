#pragma once

#include "cli/simulate_options.h"
#include "runtime/base/result.h"

namespace paceline::cli {

/// `paceline simulate --nodes`: strategies on a simulated cluster of the very head and agents that run in processes,
/// while things go wrong. One strategy: what happened, as it does; several: one table. On stdout.
Result<void> simulate_cluster(const SimulateFlags& flags);

}  // namespace paceline::cli
