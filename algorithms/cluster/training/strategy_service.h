#pragma once

#include <cstdint>
#include <memory>

#include "algorithms/strategy.h"
#include "runtime/base/result.h"
#include "scheduler/shell/averaging_service.h"

namespace paceline::cluster {

struct StrategyJob {
  scheduler::JobOptions job;
  algorithms::Strategy strategy;
  std::uint64_t seed = 0;
  std::uint64_t outer_elements = 0;  ///< Of a model's numbers the first so many get the strategy's outer step.
};

/// What runs the strategy on one agent: which coordinator and core, and what they are told of the strategy. `invalid`:
/// a graph cannot be read, or does not fit the number of workers.
Result<std::shared_ptr<scheduler::AveragingService>> make_strategy_service(StrategyJob job, scheduler::TaskGraph& graph,
                                                                           collective::Averager& averager,
                                                                           scheduler::SendToNode send);

}  // namespace paceline::cluster
