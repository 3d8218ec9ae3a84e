#include "algorithms/simulate/scenario.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "algorithms/simulate/random.h"

namespace paceline::simulate {
namespace {

constexpr double kNoise = 0.5;           // Of each number of a mini-batch's gradient.
constexpr double kLeastCurvature = 0.1;  // Of the mean worker; the largest is 1.
constexpr double kDisagreement = 0.5;    // Standard deviation of a worker's optimum around the common one.

/// Who is delayed at this step.
std::vector<bool> delayed(const Scenario& scenario, std::int64_t step) {
  const auto workers = static_cast<std::size_t>(scenario.workers);
  std::vector<bool> result(workers, false);
  if (scenario.straggle.worker) {
    result[static_cast<std::size_t>(*scenario.straggle.worker)] = true;
    return result;
  }
  if (scenario.straggle.count == 0) return result;
  std::vector<std::size_t> order(workers);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(scenario.seed, Use::stragglers, {step});
  for (std::size_t k = 0; k < static_cast<std::size_t>(scenario.straggle.count); ++k) {
    std::swap(order[k], order[k + static_cast<std::size_t>(random.below(static_cast<std::int64_t>(workers - k)))]);
    result[order[k]] = true;
  }
  return result;
}

double step_time(const Scenario& scenario, std::int32_t worker, std::int64_t step) {
  double time = 0;
  for (std::int64_t k = 0; k < scenario.batches; ++k)
    time += draw(scenario.compute, scenario.seed, Rank{worker}, step * scenario.batches + k);
  const auto slow = scenario.slow.find(worker);
  return slow == scenario.slow.end() ? time : time * slow->second;
}

}  // namespace

std::vector<Quadratic> scenario_workers(const Scenario& scenario) {
  std::vector<Quadratic> workers;
  for (std::int32_t i = 0; i < scenario.workers; ++i) {
    Random random(scenario.seed, Use::scenario, {i});
    Quadratic worker;
    for (std::int32_t k = 0; k < kScenarioDimensions; ++k) {
      const double common = std::pow(kLeastCurvature, static_cast<double>(k) / (kScenarioDimensions - 1));
      worker.a.push_back(common * (0.5 + random.uniform()));  // Were all the same, local steps would cost nothing.
    }
    for (std::int32_t k = 0; k < kScenarioDimensions; ++k) worker.c.push_back(1 + kDisagreement * random.normal());
    workers.push_back(std::move(worker));
  }
  return workers;
}

std::shared_ptr<const Problem> scenario_problem(const Scenario& scenario) {
  const double noise = kNoise / std::sqrt(static_cast<double>(scenario.batches));
  return make_quadratic(scenario_workers(scenario), noise, scenario.seed);
}

Job scenario_job(const Scenario& scenario, const std::shared_ptr<const Problem>& problem, const std::string& strategy,
                 bool brings_batches) {
  Job job;
  job.problem = problem;
  job.start = {Vector(problem->dimensions(), 0)};
  job.strategy = strategy;
  job.lr = scenario.lr;
  job.steps = scenario.steps;
  job.latency_s = scenario.latency_s;
  job.bandwidth_Bps = scenario.bandwidth_Bps;
  job.model_bytes = scenario.model_bytes.value_or(0);
  job.seed = scenario.seed;
  job.failures = scenario.failures;
  const double divisor = brings_batches ? static_cast<double>(scenario.batches) : 1;
  for (std::int64_t step = 0; step < scenario.steps; ++step) {
    const auto late = delayed(scenario, step);
    auto& row = job.compute_s.emplace_back();
    for (std::int32_t i = 0; i < scenario.workers; ++i) {
      const double delay = late[static_cast<std::size_t>(i)] ? scenario.straggle.delay_s : 0;
      row.push_back(std::clamp((step_time(scenario, i, step) + delay) / divisor, kTimeLeast, kTimeMost));
    }
  }
  return job;
}

}  // namespace paceline::simulate
