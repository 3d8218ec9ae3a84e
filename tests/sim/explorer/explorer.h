#pragma once

#include <cstddef>
#include <string>

#include "tests/sim/explorer/mutation.h"
#include "tests/sim/explorer/round_state.h"

namespace paceline::explorer {

/// What a walk came to.
struct Walk {
  std::size_t states = 0;
  std::size_t ends = 0;   ///< States in which nothing more can happen, or only a stopped worker can wake.
  std::string violation;  ///< Empty: no promise was broken. The walk ends at the first that is.
  std::string way;        ///< How to get there, one move a line.
};

/// Walks through all states that a model can be in, depth first, each once (known by a 64-bit hash of all that it is
/// made of), and holds each against the promises of the round core.
Walk walk(const Model& model, Mutation mutation = Mutation::none);

}  // namespace paceline::explorer
