#include "algorithms/train/straggler.h"

#include <numeric>
#include <vector>

#include "runtime/base/splitmix.h"

namespace paceline::train {
Straggler::Straggler(const job::SlowWorkers& slow, job::RandomDelay delay, std::int32_t rank, std::int32_t workers,
                     std::uint64_t seed)
    : delay_(delay), rank_(rank), workers_(workers), seed_(seed) {
  if (const auto it = slow.factors.find(rank); it != slow.factors.end()) factor_ = it->second;
}

double Straggler::before(std::int64_t update) const {
  if (delay_.count <= 0) return 0;
  if (delay_.count >= workers_) return delay_.seconds;
  // The first `count` of a shuffle (Fisher-Yates) of the workers.
  std::vector<std::int32_t> order(static_cast<std::size_t>(workers_));
  std::iota(order.begin(), order.end(), 0);
  std::uint64_t state = splitmix(seed_ ^ splitmix(static_cast<std::uint64_t>(update)));
  for (std::size_t i = 0; i < static_cast<std::size_t>(delay_.count); ++i) {
    state = splitmix(state);
    std::swap(order[i], order[i + state % (order.size() - i)]);
    if (order[i] == rank_) return delay_.seconds;
  }
  return 0;
}

}  // namespace paceline::train
