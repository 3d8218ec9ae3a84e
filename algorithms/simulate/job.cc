#include "algorithms/simulate/job.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "algorithms/simulate/drive.h"
#include "algorithms/strategy.h"

namespace paceline::simulate {
namespace {

Result<void> check(const Job& job) {
  const auto bad = [](std::string text) { return fail(ErrorKind::invalid, std::move(text)); };
  if (!job.problem && job.workers.empty()) return bad("problem.workers: there are none; give at least one");
  const std::size_t count = job.problem ? static_cast<std::size_t>(job.problem->workers()) : job.workers.size();
  const std::size_t size = job.problem ? job.problem->dimensions() : job.workers[0].a.size();
  for (std::size_t i = 0; i < job.workers.size(); ++i) {
    if (size == 0 || job.workers[i].a.size() != size || job.workers[i].c.size() != size) {
      return bad("problem.workers[" + std::to_string(i) +
                 "]: a and c must have as many numbers as worker 0's a, at least one");
    }
  }
  if (job.start.size() != 1 && job.start.size() != count) return bad("start: give one vector, or one for each worker");
  for (const Vector& x : job.start) {
    if (x.size() != size)
      return bad("start: has " + std::to_string(x.size()) + " numbers, the problem " + std::to_string(size));
  }
  if (job.steps < 1) return bad("steps: " + std::to_string(job.steps) + "; must be at least 1");
  if (job.compute_s.empty()) return bad("compute_s: has no row");
  for (const auto& row : job.compute_s) {
    if (row.size() != count) return bad("compute_s: each row must have one number for each worker");
    for (double s : row) {
      if (!(s >= 1e-9) || s > 1e6) return bad("compute_s: " + std::to_string(s) + "; must be from 1e-9 to 1e6 seconds");
    }
  }
  if (!job.node_of.empty() && job.node_of.size() != count) return bad("node_of: must have one number for each worker");
  for (std::int32_t n : job.node_of) {
    if (n < 0 || static_cast<std::size_t>(n) >= count) return bad("node_of: agents are numbered from 0, densely");
  }
  std::vector<bool> failing(count);
  for (const Job::Failure& failure : job.failures) {
    const auto worker = static_cast<std::size_t>(failure.worker.value);
    if (failure.worker.value < 0 || worker >= count || failing[worker])
      return bad("failures: name a worker of the job, and each at most once");
    failing[worker] = true;
  }
  return {};
}

/// Who leaves is there, who joins is not, and somebody stays, of whom those have their state.
Result<void> check_views(const Job& job, std::int32_t workers) {
  std::set<Rank> there;
  for (std::int32_t i = 0; i < workers; ++i) there.insert(Rank{i});
  Version before{-2};
  for (std::size_t k = 0; k < job.views.size(); ++k) {
    const auto& [after, leave, join] = job.views[k];
    const auto bad = [k](const std::string& text) {
      return fail(ErrorKind::invalid, "views[" + std::to_string(k) + "]" + text);
    };
    if (after <= before || after.value >= job.steps - 1)
      return bad(".after: " + to_string(after) + "; must be larger than that before it, and below " +
                 std::to_string(job.steps - 1) + ", the last step");
    before = after;
    for (const Rank rank : leave)
      if (there.erase(rank) == 0) return bad(".leave: worker " + to_string(rank) + " is not there");
    if (there.empty()) return bad(".leave: somebody has to stay");
    for (const Rank rank : join) {
      const bool is_one = rank.value >= 0 && rank.value < workers;
      if (!is_one || std::find(leave.begin(), leave.end(), rank) != leave.end() || !there.insert(rank).second)
        return bad(".join: worker " + to_string(rank) + (is_one ? " is there, or leaves" : " is none of the job"));
    }
  }
  return {};
}

/// All average together, and who leaves and joins does so between two averages.
bool has_views(const algorithms::Strategy& strategy) {
  if (algorithms::coordination(strategy) != algorithms::Coordination::rounds || algorithms::mixes_batches(strategy))
    return false;
  return std::all_of(strategy.tiers.begin(), strategy.tiers.end(), [](const algorithms::Tier& tier) {
    using scheduler::Lateness;
    const bool waits = tier.late == Lateness::waits || tier.late == Lateness::finishes;
    return (tier.trigger == scheduler::Trigger::all_arrived && waits && !tier.grace) || tier.late == Lateness::abandons;
  });
}

}  // namespace

Result<Outcome> simulate(const Job& job) {
  PACELINE_TRY(check(job));
  const auto problem = job.problem ? job.problem : make_quadratic(job.workers);
  const std::int32_t workers = problem->workers();
  auto strategy = algorithms::parse_strategy(job.strategy, workers);
  if (!strategy) return tl::unexpected(strategy.error());
  const bool shared_model = std::all_of(strategy->tiers.begin(), strategy->tiers.end(), [](const auto& tier) {
    return tier.payload == scheduler::Payload::gradients &&
           (tier.groups.kind == algorithms::Groups::Kind::all || tier.groups.kind == algorithms::Groups::Kind::server);
  });
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
  if (!job.failures.empty()) {
    if (algorithms::coordination(*strategy) != algorithms::Coordination::rounds)
      return fail(ErrorKind::invalid,
                  "failures (--fail) of workers under " + job.strategy +
                      " are not simulated; take a strategy whose workers average in rounds, such as "
                      "allreduce, local-sgd, wagma or nonblocking");
    const scheduler::RoundEngine::Options real;  // The others wait for the silent as long as in real runs.
    world.patience_min = real.patience_min;
    world.patience_median_steps = real.patience_median_steps;
    world.absent_median_steps = real.absent_median_steps;
  }
  if (strategy->patience && algorithms::coordination(*strategy) != algorithms::Coordination::rounds)
    return fail(ErrorKind::invalid, "patience of " + job.strategy +
                                        " is not simulated; it is for strategies whose workers average in rounds, such "
                                        "as allreduce, local-sgd, wagma or nonblocking");
  if (!job.views.empty()) {
    if (!has_views(*strategy) || !job.failures.empty())
      return fail(
          ErrorKind::invalid,
          "views: under " + job.strategy +
              (job.failures.empty() ? " they are not simulated; take a strategy whose workers all wait for each "
                                      "other, such as allreduce, local-sgd or adacomm, or nonblocking"
                                    : ": give them, or failures, not both"));
    PACELINE_TRY(check_views(job, workers));
    world.views = job.views;
  }
  for (const Job::Failure& failure : job.failures) {
    const Instant at{from_seconds(failure.at_s)};
    const auto until = failure.down_s ? std::optional(at + from_seconds(*failure.down_s)) : std::nullopt;
    world.faults.push_back({failure.worker, at, until});
  }
  world.last = Version{job.steps - 1};
  world.late_finish_their_iterations = true;
  world.keeps_events = false;
  world.network = {from_seconds(job.latency_s), job.bandwidth_Bps};
  world.model_bytes = job.model_bytes;

  Learner learner;
  learner.start = [&job](Rank rank) {
    return job.start.size() == 1 ? job.start[0] : job.start[static_cast<std::size_t>(rank.value)];
  };
  learner.gradient = [&job, problem](Rank rank, Version t, const Vector& x) {
    if (job.on_step) job.on_step();
    return problem->gradient(rank, t, x);
  };
  learner.lr = job.lr;
  learner.momentum = job.momentum;
  learner.nesterov = job.nesterov;
  return drive(std::move(world), std::move(learner), *strategy, job.seed);
}

}  // namespace paceline::simulate
