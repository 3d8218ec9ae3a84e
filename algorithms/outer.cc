#include "algorithms/outer.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace paceline::algorithms {

template <class T>
void outer_step(const Outer& outer, std::span<T> anchor, std::span<T> momentum, std::span<T> mean, double lr) {
  PACELINE_CHECK(anchor.size() == momentum.size() && anchor.size() == mean.size(), "spans of one model have one size");
  const bool divides = outer.kind == Outer::Kind::block_momentum || outer.kind == Outer::Kind::slowmo;
  if (outer.kind == Outer::Kind::none || (divides && lr <= 0)) {
    std::copy(mean.begin(), mean.end(), anchor.begin());
    return;
  }
  const double beta = outer.momentum, rate = outer.rate;
  for (std::size_t k = 0; k < anchor.size(); ++k) {
    const double w = anchor[k], m = mean[k], old = momentum[k];
    double buffer = 0, end = 0, next = 0;
    if (outer.kind == Outer::Kind::bmuf) {
      const double start = outer.nesterov ? w + beta * old : w;
      buffer = beta * old + rate * (m - start);
      end = w + buffer;
      next = outer.nesterov ? end + beta * buffer : end;
    } else if (outer.kind == Outer::Kind::diloco) {
      const double moved = w - m;
      buffer = beta * old + moved;
      end = next = w - rate * (moved + beta * buffer);
    } else {
      buffer = beta * old + (w - m) / lr;
      end = next = w - (outer.kind == Outer::Kind::slowmo ? rate : 1) * lr * buffer;
    }
    momentum[k] = static_cast<T>(buffer);
    anchor[k] = static_cast<T>(end);
    mean[k] = static_cast<T>(next);
  }
}

template void outer_step<float>(const Outer&, std::span<float>, std::span<float>, std::span<float>, double);
template void outer_step<double>(const Outer&, std::span<double>, std::span<double>, std::span<double>, double);

}  // namespace paceline::algorithms
