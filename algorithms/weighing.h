#pragma once

#include "algorithms/strategy.h"
#include "scheduler/rounds/weighing.h"

namespace paceline::algorithms {

/// What contributions to the strategy's rounds weigh.
inline scheduler::Weighing weighing_of(const Strategy& strategy) {
  using Divisor = scheduler::Weighing::Divisor;
  const auto late = strategy.tiers.front().late;
  scheduler::Weighing weighing{.bodies = strategy.batches};
  weighing.by_bodies = strategy.normalise == Strategy::Normalise::a;
  weighing.by_samples = strategy.tiers.back().weighs_by_samples;
  if (strategy.brings_batches()) {
    weighing.divisor = strategy.normalise == Strategy::Normalise::d ? Divisor::bodies : Divisor::members;
  } else if (late == scheduler::Lateness::accumulates || late == scheduler::Lateness::drops) {
    weighing.divisor = Divisor::members;  // Who contributes nothing counts as zero.
  }
  return weighing;
}

}  // namespace paceline::algorithms
