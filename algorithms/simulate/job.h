#pragma once

#include <string>
#include <vector>

#include "algorithms/simulate/world.h"
#include "runtime/base/result.h"

namespace paceline::simulate {

/// A small deterministic problem with every time given (the job contract): worker i's loss is 1/2 sum a (x - c)^2.
struct Job {
  struct Objective {
    Vector a, c;
  };
  std::vector<Objective> workers;
  std::vector<Vector> start;  ///< One a worker, or one for all.
  std::string strategy;
  double lr = 0.25;
  double momentum = 0;
  bool nesterov = false;
  std::int64_t steps = 1;
  std::vector<std::vector<double>> compute_s;  ///< Row t mod rows: time of each worker at its iteration t; > 0.
  std::vector<std::int32_t> node_of;  ///< Empty: all on one agent. The rows are the same however workers are spread.
};

/// Rows of the job contract, in order of time, worker, step. `invalid` names the field or the strategy's parameter.
Result<std::vector<Row>> simulate(const Job& job);

}  // namespace paceline::simulate
