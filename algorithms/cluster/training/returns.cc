#include "algorithms/cluster/training/returns.h"

#include <algorithm>

namespace paceline::cluster {

std::optional<Returns::Gone> Returns::end(Rank rank) {
  const auto way = ways_.extract(rank);
  return way ? std::optional(way.mapped().gone) : std::nullopt;
}

bool Returns::has(WorkerId worker) const {
  return std::any_of(ways_.begin(), ways_.end(),
                     [&](const auto& way) { return way.second.share && way.second.share->worker == worker; });
}

void Returns::withdraw(WorkerId worker) {
  for (auto& [rank, way] : ways_)
    if (way.share && way.share->worker == worker) way.share.reset();
}

std::vector<Rank> Returns::ranks() const {
  std::vector<Rank> ranks;
  for (const auto& [rank, way] : ways_) ranks.push_back(rank);
  return ranks;
}

std::vector<std::pair<Rank, Returns::Share>> Returns::waiting() const {
  std::vector<std::pair<Rank, Share>> waiting;
  for (const auto& [rank, way] : ways_)
    if (way.share) waiting.emplace_back(rank, *way.share);
  return waiting;
}

}  // namespace paceline::cluster
