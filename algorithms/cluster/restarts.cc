#include "algorithms/cluster/restarts.h"

#include <algorithm>

namespace paceline::cluster {

std::optional<Duration> Restarts::ended(Duration lived) {
  if (lived >= kLived) {
    bad_ = 0;
    return Duration::zero();
  }
  if (++bad_ == kBadStarts) return std::nullopt;
  return std::min<Duration>(kLongestWait, kFirstWait * (1 << (bad_ - 1)));
}

}  // namespace paceline::cluster
