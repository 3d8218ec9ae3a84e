#include "algorithms/simulate/cluster/cluster_run.h"

#include <algorithm>
#include <utility>

#include "algorithms/simulate/figures.h"

namespace paceline::simulate {
namespace {

using nlohmann::json;

constexpr Duration kLook = std::chrono::milliseconds(10);
constexpr Duration kReadyWithin = std::chrono::seconds(30);
constexpr Duration kTimeMost = std::chrono::hours(24);

/// What people want to read of a job's events.
std::string words_of(const json& event) {
  const auto kind = event.value("event", "");
  if (kind == "left" || kind == "returned" || kind == "failed" || kind == "node_lost" || kind == "node_joined" ||
      kind == "warning")
    return event.value("text", "");
  if (kind == "evaluated") return "evaluated after update " + std::to_string(event.value("update", std::int64_t{0}));
  return {};
}

class ClusterRun {
 public:
  ClusterRun(const ClusterScenario& scenario, const std::function<void(double, const std::string&)>& tell)
      : scenario_(scenario), tell_(tell), cluster_({.nodes = scenario.nodes, .seed = scenario.training.seed}) {}

  Result<ClusterOutcome> run() {
    for (Duration waited{}; !cluster_.ready(); waited += kLook) {
      if (waited >= kReadyWithin) return fail(ErrorKind::internal, "the simulated cluster does not come up");
      cluster_.run(kLook);
    }
    driver_ = cluster_.start_driver(NodeId{0});
    cluster_.run(kLook);
    begun_ = cluster_.now();
    const auto& training = scenario_.training;
    job_ = &driver_->submit(
        json{{"strategy", scenario_.strategy}, {"workers", training.workers}, {"seed", training.seed}}, training);
    Faults faults(scenario_.faults, training.seed, scenario_.nodes, begun_);
    while (!driver_->is_gone() && !driver_->is_over(*job_) && cluster_.now() < begun_ + kTimeMost) {
      const Instant until = cluster_.now() + kLook;
      if (const auto next = faults.next(); next && *next <= until) {
        cluster_.run(std::max(Duration::zero(), *next - cluster_.now()));
        say(faults.strike(cluster_));
      } else {
        cluster_.run(kLook);
      }
      say_news();
      if (scenario_.on_look) scenario_.on_look(seconds(cluster_.now() - begun_));
    }
    if (job_->refused) return fail(ErrorKind::invalid, job_->failure);
    return outcome();
  }

 private:
  void say(const std::string& what) {
    if (!what.empty()) tell_(seconds(cluster_.now() - begun_), what);
  }
  void say_news() {
    for (const auto& event : std::exchange(job_->news, {})) say(words_of(event));
  }

  ClusterOutcome outcome() {
    ClusterOutcome outcome;
    outcome.time_s = seconds(cluster_.now() - begun_);
    outcome.failure = job_->failure;
    if (driver_->is_gone()) outcome.failure = "the driver's node was lost";
    if (!driver_->is_gone() && !driver_->is_over(*job_))
      outcome.failure = "it did not end: " + driver_->state_of(*job_);
    const Trained* first = nullptr;
    for (const auto& one : cluster_.trained()) {
      outcome.updates = std::max(outcome.updates, one.updates);
      if (!one.trouble.empty()) continue;
      ++outcome.done;
      if (first == nullptr) first = &one;
      outcome.has_one_model = outcome.has_one_model && one.model == first->model;
    }
    if (first != nullptr) {
      const Scenario problem{.workers = scenario_.training.workers, .seed = scenario_.training.seed};
      const auto objective = scenario_problem(problem);
      outcome.loss = objective->objective(first->model) - objective->objective(optimum(scenario_workers(problem)));
    }
    outcome.messages = cluster_.counts().delivered;
    outcome.bytes = cluster_.counts().bytes;
    outcome.findings = cluster_.findings();
    return outcome;
  }

  const ClusterScenario& scenario_;
  const std::function<void(double, const std::string&)>& tell_;
  SimulatedCluster cluster_;
  SimulatedDriver* driver_ = nullptr;
  SimulatedDriver::Job* job_ = nullptr;
  Instant begun_{};
};

}  // namespace

Result<ClusterOutcome> run_cluster(const ClusterScenario& scenario,
                                   const std::function<void(double at_s, const std::string& what)>& tell) {
  return ClusterRun(scenario, tell).run();
}

}  // namespace paceline::simulate
