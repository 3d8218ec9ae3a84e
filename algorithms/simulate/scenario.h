#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/simulate/distributions.h"
#include "algorithms/simulate/job.h"

namespace paceline::simulate {

/// Numbers of the model of a scenario's problem: enough to see noise average out, few enough to be quick.
inline constexpr std::int32_t kScenarioDimensions = 32;

/// A cluster with its accidents, and a problem to learn on it: what strategies are compared on. Of one seed every
/// strategy meets the same problem, the same gradient noise and the same times.
struct Scenario {
  std::int32_t workers = 4;
  std::int64_t steps = 200;
  Distribution compute = Constant{1};        ///< Of a mini-batch.
  std::map<std::int32_t, double> slow = {};  ///< Workers that always take so many times as long.
  struct Straggle {
    std::optional<std::int32_t> worker = {};  ///< This one at every step; else
    std::int32_t count = 0;                   ///< so many at random.
    double delay_s = 0;
  } straggle = {};
  double latency_s = 0;
  double bandwidth_Bps = 0;                ///< 0: infinitely fast.
  std::optional<double> model_bytes = {};  ///< Else kScenarioDimensions doubles.
  std::vector<Job::Failure> failures = {};
  double lr = 0.1;
  std::int64_t batches = 1;  ///< Mini-batches a step.
  std::uint64_t seed = 1;

  /// Bytes of the scenario's model for each byte that the simulated one has.
  double byte_factor() const {
    return model_bytes ? *model_bytes / (kScenarioDimensions * static_cast<double>(sizeof(double))) : 1;
  }
};

/// The scenario's problem, `quadratic_noise` with the numbers that docs/jobs.md states.
std::vector<Quadratic> scenario_workers(const Scenario& scenario);
std::shared_ptr<const Problem> scenario_problem(const Scenario& scenario);

/// The scenario as a job under `strategy`. One that brings its own mini-batches (nonblocking; `brings_batches`) gets
/// the time of one of a step's mini-batches, the others of the whole step.
Job scenario_job(const Scenario& scenario, const std::shared_ptr<const Problem>& problem, const std::string& strategy,
                 bool brings_batches);

}  // namespace paceline::simulate
