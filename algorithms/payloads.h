#pragma once

#include <cstdint>
#include <limits>

#include "algorithms/strategy.h"

namespace paceline::algorithms {

/// What a worker gives at each iteration, where that changes during a run: gradients until `gradients_until`, models
/// from there on; with `models_every` the gradients' syncs are of models. Pure; the worker's side of what make_plan
/// says of rounds.
struct Payloads {
  enum class Kind {
    gradients,
    models,
    both,  ///< The own gradient is applied, then models are averaged.
  };
  std::int64_t gradients_until = 0;
  std::int64_t models_every = 0;  ///< 0: never.

  static Payloads of(const Strategy& strategy) {
    constexpr auto kAlways = std::numeric_limits<std::int64_t>::max();
    const Tier& last = strategy.tiers.back();
    if (strategy.tiers.front().payload == Payload::models) return {};
    // What a worker adds to the server's model is its optimiser's step: the model that it publishes, less the one it
    // had.
    if (coordination(strategy) == Coordination::server) return {};
    if (mixes_batches(strategy)) return {.gradients_until = kAlways, .models_every = 1};
    if (strategy.warmup > 0) return {.gradients_until = strategy.warmup};
    return {.gradients_until = kAlways, .models_every = last.payload == Payload::models ? last.period.steps : 0};
  }

  /// Of a job that ends with iteration `last`.
  Kind at(std::int64_t iteration, std::int64_t last) const {
    if (iteration >= gradients_until) return Kind::models;
    const bool sync = models_every > 0 && ((iteration + 1) % models_every == 0 || iteration == last);
    return sync ? Kind::both : Kind::gradients;
  }
};

}  // namespace paceline::algorithms
