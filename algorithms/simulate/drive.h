#pragma once

#include <cstdint>

#include "algorithms/simulate/world.h"
#include "runtime/base/result.h"

namespace paceline::simulate {

/// Trains with a strategy under virtual time, through the core that decides in real runs: its round engines, its mix
/// engines or its asynchronous ones. `seed` draws what the strategy draws (matchings, partners, initiators).
/// `invalid`: a graph that the strategy names cannot be read.
Result<Outcome> drive(World world, Learner learner, const algorithms::Strategy& strategy, std::uint64_t seed);

}  // namespace paceline::simulate
