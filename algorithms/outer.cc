#include "algorithms/outer.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace paceline::algorithms {

template <class T>
void block_momentum_step(std::span<T> anchor, std::span<T> momentum, std::span<T> mean, double beta, double lr) {
  PACELINE_CHECK(anchor.size() == momentum.size() && anchor.size() == mean.size(), "spans of one model have one size");
  if (lr <= 0) {
    std::copy(mean.begin(), mean.end(), anchor.begin());
    return;
  }
  for (std::size_t k = 0; k < anchor.size(); ++k) {
    const double start = anchor[k];
    const double u = beta * momentum[k] + (start - mean[k]) / lr;
    momentum[k] = static_cast<T>(u);
    anchor[k] = mean[k] = static_cast<T>(start - lr * u);
  }
}

template void block_momentum_step<float>(std::span<float>, std::span<float>, std::span<float>, double, double);
template void block_momentum_step<double>(std::span<double>, std::span<double>, std::span<double>, double, double);

}  // namespace paceline::algorithms
