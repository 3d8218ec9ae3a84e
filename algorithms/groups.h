#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/ids.h"

namespace paceline::algorithms {

/// Butterfly groups (WAGMA-SGD, Alg. 1): at iteration t the log2(S) masks 1 << ((t*log2(S) + r) mod log2(P)), r = 0, 1,
/// .., tie every rank p to p XOR mask; a group is closed under the masks. Groups are disjoint, have S members and cover
/// all ranks; ceil(log2(P)/log2(S)) consecutive averages of fresh models give the mean of all, from any t. Everywhere
/// here P and S are powers of two with S <= P (checked); S = 1 puts every rank in a group of its own, for any P. Pure.
/// No bytes move here: see runtime/collective.

bool is_power_of_two(std::int64_t n);

/// sqrt(P), rounded up to a power of two: 2^ceil(log2(P)/2). P must be a power of two.
std::int32_t default_group_size(std::int32_t workers);

/// The masks of iteration t, in the order of the exchange phases.
std::vector<std::int32_t> butterfly_masks(std::int32_t workers, std::int32_t group_size, Version t);

/// The group of one rank, sorted.
std::vector<Rank> butterfly_group_of(std::int32_t workers, std::int32_t group_size, Version t, Rank rank);

/// All groups, each sorted, ordered by their lowest rank.
std::vector<std::vector<Rank>> butterfly_groups(std::int32_t workers, std::int32_t group_size, Version t);

/// The smallest size that divides the number of workers and is at least its square root.
std::int32_t default_strided_size(std::int32_t workers);

/// Groups for any P that S divides (checked), where butterflies are not defined: in even iterations contiguous blocks
/// {qS, .., qS+S-1}, in odd ones sets of stride P/S {q, q+P/S, ..}. Two consecutive averages give the mean of all if
/// P = S^2. Each sorted, ordered by their lowest rank. Pure.
std::vector<std::vector<Rank>> strided_groups(std::int32_t workers, std::int32_t group_size, Version t);

}  // namespace paceline::algorithms
