#pragma once

#include <random>
#include <string>
#include <vector>

#include "algorithms/simulate/job.h"
#include "tests/support/reference/reference.h"

namespace paceline::sim {

/// One random job, as the simulator takes it and as the reference does.
struct Pair {
  simulate::Job job;
  reference::Job expected;
};

/// Strategies that random jobs are made of: how they are called in a test's name.
std::vector<std::string> random_strategies();

/// A job of that strategy: parameters, workers, speeds, starts, momentum. Small whole times make ties. The same seed
/// gives the same job.
Pair random_pair(const std::string& strategy, unsigned seed);

/// Strategies whose jobs may say who leaves and joins.
std::vector<std::string> strategies_of_views();
/// The same job, in which workers leave and join after averages of all: at the start, and one to five times later.
/// False: it has none that they could.
bool add_views(Pair& pair, unsigned seed);

std::string describe(const simulate::Job& job);

}  // namespace paceline::sim
