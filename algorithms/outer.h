#pragma once

#include <span>

namespace paceline::algorithms {

/// Block momentum (AdaComm sec. 5.3.1; BMUF-CBM with zeta = 1; SlowMo with alpha = 1), after the average of a block:
///
///   G = (anchor - mean) / lr;  momentum = beta * momentum + G;  anchor = anchor - lr * momentum
///
/// The block's gradient is taken from the displacement, so local momentum is allowed for (its buffers are to be cleared
/// at the start of every block). On return `anchor` and `mean` both hold the next block's start. beta = 0: plain
/// averaging. All spans have one size and do not overlap; `momentum` starts as zeros. A learning rate of 0 leaves the
/// momentum as it is and starts the next block at the mean. Element by element, no allocation: replicas that see equal
/// values stay equal.
template <class T>
void block_momentum_step(std::span<T> anchor, std::span<T> momentum, std::span<T> mean, double beta, double lr);

extern template void block_momentum_step<float>(std::span<float>, std::span<float>, std::span<float>, double, double);
extern template void block_momentum_step<double>(std::span<double>, std::span<double>, std::span<double>, double,
                                                 double);

}  // namespace paceline::algorithms
