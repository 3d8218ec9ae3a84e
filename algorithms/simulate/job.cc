#include "algorithms/simulate/job.h"

#include <algorithm>
#include <cmath>

#include "algorithms/plan.h"
#include "algorithms/simulate/simulation.h"

namespace paceline::simulate {
namespace {

Result<void> check(const Job& job) {
  const auto bad = [](std::string text) { return fail(ErrorKind::invalid, std::move(text)); };
  if (job.workers.empty()) return bad("problem.workers: there are none; give at least one");
  const std::size_t size = job.workers[0].a.size();
  for (std::size_t i = 0; i < job.workers.size(); ++i) {
    if (size == 0 || job.workers[i].a.size() != size || job.workers[i].c.size() != size) {
      return bad("problem.workers[" + std::to_string(i) +
                 "]: a and c must have as many numbers as worker 0's a, at least one");
    }
  }
  if (job.start.size() != 1 && job.start.size() != job.workers.size())
    return bad("start: give one vector, or one for each worker");
  for (const Vector& x : job.start) {
    if (x.size() != size)
      return bad("start: has " + std::to_string(x.size()) + " numbers, the problem " + std::to_string(size));
  }
  if (job.steps < 1) return bad("steps: " + std::to_string(job.steps) + "; must be at least 1");
  if (job.compute_s.empty()) return bad("compute_s: has no row");
  for (const auto& row : job.compute_s) {
    if (row.size() != job.workers.size()) return bad("compute_s: each row must have one number for each worker");
    for (double s : row) {
      if (!(s >= 1e-9) || s > 1e6) return bad("compute_s: " + std::to_string(s) + "; must be from 1e-9 to 1e6 seconds");
    }
  }
  if (!job.node_of.empty() && job.node_of.size() != job.workers.size())
    return bad("node_of: must have one number for each worker");
  for (std::int32_t n : job.node_of) {
    if (n < 0 || static_cast<std::size_t>(n) >= job.workers.size())
      return bad("node_of: agents are numbered from 0, densely");
  }
  return {};
}

}  // namespace

Result<std::vector<Row>> simulate(const Job& job) {
  PACELINE_TRY(check(job));
  const auto workers = static_cast<std::int32_t>(job.workers.size());
  auto strategy = algorithms::parse_strategy(job.strategy, workers);
  if (!strategy) return tl::unexpected(strategy.error());
  const bool shared_model = strategy->tiers.back().payload == scheduler::Payload::gradients;
  if (shared_model &&
      std::any_of(job.start.begin(), job.start.end(), [&](const Vector& x) { return x != job.start[0]; })) {
    return fail(ErrorKind::invalid,
                "start: " + job.strategy + " has one model, so all workers must start at the same point");
  }

  World world;
  for (std::int32_t i = 0; i < workers; ++i) {
    world.node_of.push_back(NodeId{job.node_of.empty() ? 0 : job.node_of[static_cast<std::size_t>(i)]});
    world.nodes = std::max(world.nodes, world.node_of.back().value + 1);
  }
  world.compute = [&job](Rank rank, Version t) {
    const auto& row = job.compute_s[static_cast<std::size_t>(t.value) % job.compute_s.size()];
    return from_seconds(row[static_cast<std::size_t>(rank.value)]);
  };
  world.last = Version{job.steps - 1};
  world.late_finish_their_iterations = true;

  Learner learner;
  learner.start = [&job](Rank rank) {
    return job.start.size() == 1 ? job.start[0] : job.start[static_cast<std::size_t>(rank.value)];
  };
  learner.gradient = [&job](Rank rank, Version, const Vector& x) {
    const Job::Objective& f = job.workers[static_cast<std::size_t>(rank.value)];
    Vector gradient(x.size());
    double loss = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      gradient[k] = f.a[k] * (x[k] - f.c[k]);
      loss += 0.5 * f.a[k] * (x[k] - f.c[k]) * (x[k] - f.c[k]);
    }
    return std::pair(std::move(gradient), loss);
  };
  learner.lr = job.lr;
  learner.momentum = job.momentum;
  learner.nesterov = job.nesterov;
  for (const auto& tier : strategy->tiers) {
    if (tier.period.kind == algorithms::Period::Kind::adacomm) learner.loss_window = tier.period.loss_window;
  }

  Rules rules;
  rules.plan = [&] { return algorithms::make_plan(*strategy, workers, job.steps, {.final_sync = false}); };
  rules.batches = strategy->batches;
  rules.normalise = strategy->normalise;
  rules.block_momentum = strategy->block_momentum;

  Simulation simulation(std::move(world), std::move(learner), std::move(rules));
  simulation.run();
  return simulation.rows();
}

}  // namespace paceline::simulate
