#include "cli/simulate_cluster.h"

#include <cstdio>
#include <string>
#include <utility>

#include "algorithms/simulate/cluster/cluster_run.h"
#include "cli/simulate_view.h"
#include "runtime/base/json.h"
#include "runtime/base/steady_now.h"
#include "runtime/observe/format.h"
#include "runtime/observe/table.h"

namespace paceline::cli {
namespace {

using nlohmann::json;
using observe::format;
using simulate::ClusterOutcome;
using simulate::ClusterScenario;

constexpr std::int64_t kSimulatedNodesMax = 64, kWorkersMax = 256, kUpdatesMax = 1'000'000;
constexpr std::int64_t kUpdatesDefault = 200;
constexpr Duration kQuiet = std::chrono::seconds(2);

Result<void> within(const char* flag, std::int64_t value, std::int64_t most) {
  if (value >= 1 && value <= most) return {};
  return fail(ErrorKind::invalid,
              std::string(flag) + " " + std::to_string(value) + ": give a number from 1 to " + std::to_string(most));
}

Result<ClusterScenario> scenario_of(const SimulateFlags& flags) {
  if (const auto other = flag_beside_cluster(flags))
    return fail(ErrorKind::invalid, *other +
                                        " does not go with --nodes: a simulated cluster takes --strategy or "
                                        "--compare, --workers, --steps, --compute, --faults, --lr and --seed");
  ClusterScenario scenario;
  auto& training = scenario.training;
  PACELINE_TRY(within("--nodes", *flags.nodes, kSimulatedNodesMax));
  PACELINE_TRY(within("--workers", flags.workers.value_or(training.workers), kWorkersMax));
  PACELINE_TRY(within("--steps", flags.steps.value_or(kUpdatesDefault), kUpdatesMax));
  scenario.nodes = static_cast<std::int32_t>(*flags.nodes);
  training.workers = static_cast<std::int32_t>(flags.workers.value_or(training.workers));
  training.updates = flags.steps.value_or(kUpdatesDefault);
  training.lr = flags.lr.value_or(training.lr);
  training.seed = flags.seed.value_or(training.seed);
  if (!flags.compute.empty()) training.compute = flags.compute;
  if (const auto read = simulate::parse_distribution(training.compute); !read)
    return fail(ErrorKind::invalid, "--compute " + training.compute + ": " + read.error().text);
  auto faults = simulate::parse_faults(flags.faults);
  if (!faults) return fail(ErrorKind::invalid, "--faults " + flags.faults + ": " + faults.error().text);
  scenario.faults = *std::move(faults);
  return scenario;
}

std::string state_of(const ClusterOutcome& outcome) { return outcome.failure.empty() ? "ended" : "failed"; }

json json_of(const std::string& strategy, const ClusterOutcome& outcome) {
  return {{"strategy", strategy},
          {"state", state_of(outcome)},
          {"failure", outcome.failure},
          {"virtual_s", outcome.time_s},
          {"updates", outcome.updates},
          {"workers_done", outcome.done},
          {"one_model", outcome.has_one_model},
          {"loss", outcome.loss},
          {"messages", outcome.messages},
          {"bytes", outcome.bytes},
          {"findings", outcome.findings}};
}

void print(const std::string& text) { std::fputs((text + "\n").c_str(), stdout); }

/// Tells on stderr how far it is, once it takes longer than two seconds.
std::function<void(double)> progress() {
  return [told = steady_now()](double virtual_s) mutable {
    if (steady_now() - told < kQuiet) return;
    told = steady_now();
    std::fprintf(stderr, "%s of virtual time\n", time_in_words(virtual_s).c_str());
  };
}

Result<ClusterOutcome> run_one(ClusterScenario scenario, const std::string& strategy, bool tells, bool as_json) {
  scenario.strategy = strategy;
  scenario.on_look = progress();
  auto outcome = simulate::run_cluster(scenario, [&](double at_s, const std::string& what) {
    if (tells) print(as_json ? json_text(json{{"at_s", at_s}, {"what", what}}) : format("%9.3f s  ", at_s) + what);
  });
  if (outcome && as_json) print(json_text(json_of(strategy, *outcome)));
  return outcome;
}

std::string in_words(const ClusterScenario& scenario, const std::string& strategy, const ClusterOutcome& outcome) {
  if (!outcome.failure.empty())
    return strategy + " failed after " + time_in_words(outcome.time_s) + ": " + outcome.failure;
  return strategy + " ended after " + std::to_string(outcome.updates) + " updates and " +
         time_in_words(outcome.time_s) + ": " + std::to_string(outcome.done) + " of " +
         std::to_string(scenario.training.workers) + " workers came to its end, " +
         (outcome.has_one_model ? "with one model" : "with different models") +
         format(", %.4g above the lowest loss; ", outcome.loss) + std::to_string(outcome.messages) + " messages (" +
         size_in_words(static_cast<double>(outcome.bytes)) + ") between " + std::to_string(scenario.nodes) +
         (scenario.nodes == 1 ? " node" : " nodes");
}

}  // namespace

Result<void> simulate_cluster(const SimulateFlags& flags) {
  const auto scenario = scenario_of(flags);
  if (!scenario) return tl::unexpected(scenario.error());
  const auto plan = plan_simulation(flags);
  if (!plan) return tl::unexpected(plan.error());
  const bool is_one = plan->entries.size() == 1;
  observe::Table table({"strategy", "", "time", "updates", "workers", "loss", "messages", "bytes"});
  std::string findings;
  for (const auto& entry : plan->entries) {
    const auto& strategy = entry.strategy;
    const auto outcome = run_one(*scenario, strategy, is_one, flags.json);
    if (!outcome) return tl::unexpected(outcome.error());
    for (const auto& finding : outcome->findings) findings += (findings.empty() ? "" : "; ") + finding;
    if (is_one && !flags.json) print(in_words(*scenario, strategy, *outcome));
    table.add({strategy, state_of(*outcome), time_in_words(outcome->time_s), std::to_string(outcome->updates),
               std::to_string(outcome->done) + " of " + std::to_string(scenario->training.workers),
               outcome->done > 0 ? format("%.4g", outcome->loss) : "-", std::to_string(outcome->messages),
               size_in_words(static_cast<double>(outcome->bytes))});
  }
  if (!is_one && !flags.json) std::fputs(table.text().c_str(), stdout);
  if (!findings.empty())
    return fail(ErrorKind::internal, "the simulated cluster did what it must never do: " + findings +
                                         "; please report it with this command");
  return {};
}

}  // namespace paceline::cli
