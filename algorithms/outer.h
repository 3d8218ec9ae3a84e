#pragma once

#include <span>

#include "algorithms/strategy.h"

namespace paceline::algorithms {

/// What follows the average m of a block that began at s (w: the model that the block's end stands for; all begin with
/// s = w). One family; its members differ in where momentum is kept:
///
///   block_momentum  u = beta u + (s - m) / lr   w = s - lr u                     AdaComm, sec. 5.3.1
///   bmuf            d = beta d + rate (m - s)   w += d, next start w (nesterov: w + beta d)
///                                               Chen and Huo 2016: CBM and NBM
///   slowmo          u = beta u + (s - m) / lr   w = s - rate lr u                Wang et al. 2020, alg. 1
///   diloco          b = mu b + (s - m)          w = s - rate ((s - m) + mu b)    Douillard et al. 2023: outer Nesterov
///
/// `anchor` holds w; `momentum` the buffer, zeros at first; `mean` holds m and gets the next block's start. lr: of the
/// workers in this block; where a rule divides by it, 0 leaves the momentum as it is and starts at the mean. All spans
/// have one size and do not overlap. Element by element, no allocation: replicas that see equal values stay equal.
/// Kind none: anchor = mean.
template <class T>
void outer_step(const Outer& outer, std::span<T> anchor, std::span<T> momentum, std::span<T> mean, double lr);

extern template void outer_step<float>(const Outer&, std::span<float>, std::span<float>, std::span<float>, double);
extern template void outer_step<double>(const Outer&, std::span<double>, std::span<double>, std::span<double>, double);

}  // namespace paceline::algorithms
