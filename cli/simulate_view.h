#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "algorithms/simulate/cost.h"
#include "algorithms/simulate/figures.h"
#include "algorithms/simulate/job.h"
#include "algorithms/simulate/scenario.h"

namespace paceline::cli {

/// One job for people: a row a worker, the summary, and a sentence.
std::string job_text(const simulate::Job& job, const simulate::Outcome& outcome);

/// How a scenario went under one strategy.
struct SimulatedStrategy {
  std::string label;
  simulate::Figures figures;
};

/// The table of a comparison, one row a strategy; `base` is what samples/s are relative to.
std::string scenario_table(const std::vector<SimulatedStrategy>& strategies, const simulate::Figures& base,
                           const simulate::Scenario& scenario);
/// What happened, in one sentence: which strategy had the most samples/s and which came lowest.
std::string scenario_in_words(const std::vector<SimulatedStrategy>& strategies, const simulate::Figures& base,
                              const simulate::Scenario& scenario);
/// One JSON line a strategy, the curve with it.
std::string scenario_json(const std::vector<SimulatedStrategy>& strategies, const simulate::Figures& base,
                          const simulate::Scenario& scenario);

/// "3 min", "12 s", "0.4 s"; "4.1 GB".
std::string time_in_words(double seconds);
std::string size_in_words(double bytes);

}  // namespace paceline::cli
