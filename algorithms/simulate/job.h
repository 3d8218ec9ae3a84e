#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/simulate/problems.h"
#include "algorithms/simulate/world.h"
#include "runtime/base/result.h"

namespace paceline::simulate {

/// A small deterministic problem with every time given (docs/jobs.md): worker i's loss is 1/2 sum a (x - c)^2.
struct Job {
  using Objective = Quadratic;
  std::vector<Objective> workers;
  std::shared_ptr<const Problem> problem;  ///< Any other problem, instead of `workers`.
  std::vector<Vector> start;               ///< One a worker, or one for all.
  std::string strategy;
  double lr = 0.25;
  double momentum = 0;
  bool nesterov = false;
  std::int64_t steps = 1;
  std::vector<std::vector<double>> compute_s;  ///< Row t mod rows: time of each worker at its iteration t; > 0.
  double latency_s = 0;                        ///< Of a message between workers.
  double bandwidth_Bps = 0;                    ///< Of a worker's link; 0: infinitely fast.
  double model_bytes = 0;  ///< What a model weighs on the network; 0: 8 a number. The summary counts 8 a number.
  std::uint64_t seed = 1;
  struct Failure {
    Rank worker;
    double at_s = 0;
    std::optional<double> down_s;  ///< Nullopt: dead; else it stands still for so long.
  };
  std::vector<Failure> failures;      ///< At most one a worker.
  std::vector<World::View> views;     ///< Of strategies whose workers all wait for each other, and nonblocking.
  std::function<void()> on_step;      ///< Told of every gradient that is computed; for progress.
  std::vector<std::int32_t> node_of;  ///< Empty: all on one agent. The rows are the same however workers are spread.
};

/// `invalid` names the field or the strategy's parameter.
Result<Outcome> simulate(const Job& job);

}  // namespace paceline::simulate
