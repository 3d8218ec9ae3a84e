#include "algorithms/topology/pairs.h"

#include "runtime/base/check.h"
#include "runtime/base/splitmix.h"

namespace paceline::algorithms {

std::optional<Rank> partner(std::uint64_t seed, std::int32_t workers, Rank rank, Version step, Pairing pairing) {
  PACELINE_CHECK(rank.value >= 0 && rank.value < workers, "ranks lie in 0..P-1");
  const std::uint64_t bits = draw_bits(seed, step.value, rank.value);
  const auto below = [&](std::int32_t n) { return static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(n)); };
  if (pairing == Pairing::bipartite) {
    PACELINE_CHECK(workers % 2 == 0, "bipartite pairs need an even number of workers");
    if (rank.value % 2 == 0) return std::nullopt;
    return Rank(2 * below(workers / 2));
  }
  if (workers == 1) return std::nullopt;
  const std::int32_t other = below(workers - 1);
  return Rank(other < rank.value ? other : other + 1);
}

}  // namespace paceline::algorithms
