#pragma once

#include "tests/sim/explorer/mutation.h"
#include "tests/sim/explorer/round_state.h"
#include "tests/sim/explorer/walk.h"

namespace paceline::explorer {

/// Walks through all states that a model can be in, depth first, each once (known by a 64-bit hash of all that it is
/// made of), and holds each against the promises of the round core.
Walk walk(const Model& model, Mutation mutation = Mutation::none);

}  // namespace paceline::explorer
