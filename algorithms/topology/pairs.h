#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/ids.h"

namespace paceline::algorithms {

/// Who may start an averaging of two with whom (AD-PSGD, Lian et al. 2018).
enum class Pairing {
  random,     ///< Everybody, with everybody else.
  bipartite,  ///< Odd ranks start, even ones answer: no cycle of ranks that wait for each other. P is even (checked).
};

/// With whom `rank` averages after its own step `step`: uniform over those it may start with. nullopt: it starts
/// nothing (even ranks of `bipartite`; P = 1). Pure: with n of them in ascending order it is number
/// draw_bits(seed, step, rank) mod n (runtime/base/splitmix.h).
std::optional<Rank> partner(std::uint64_t seed, std::int32_t workers, Rank rank, Version step, Pairing pairing);

}  // namespace paceline::algorithms
