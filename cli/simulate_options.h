#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/simulate/scenario.h"
#include "cli/flags/flags.h"
#include "runtime/base/result.h"

namespace paceline::cli {

/// The flags of `paceline simulate` as given.
struct SimulateFlags {
  std::string job;                           ///< A file, or "-"; empty: a scenario made of the flags below.
  std::string from;                          ///< A run's directory, or "last"; cli/simulate_from.h.
  std::optional<std::int64_t> without_slow;  ///< With `from`: a worker.
  std::string strategy;
  std::string compare;
  std::optional<std::int64_t> workers;
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> accumulate;
  std::optional<double> lr;
  std::optional<std::uint64_t> seed;
  std::string compute;                ///< "exponential(1s)".
  std::string straggle;               ///< "1:40ms" or "worker-3:40ms".
  std::vector<std::string> slow;      ///< "3:4x" each, or several with commas.
  std::string network;                ///< "latency=1ms,bandwidth=10Gbit/s".
  std::string bytes;                  ///< "100MB".
  std::vector<std::string> fail;      ///< "2@30s" or "2@30s+10s" each.
  std::optional<std::int64_t> nodes;  ///< A cluster of so many is simulated; cli/simulate_cluster.h.
  std::string faults;                 ///< With `nodes`: "kill=1/min,kill-head=2/h".
  bool json = false;
  bool yes = false;
  std::string output;
};

void add_simulate_flags(Flags app, SimulateFlags& flags);

/// A scenario and the strategies that it is simulated under.
struct SimulationPlan {
  struct Entry {
    std::string label;  ///< As the user named it.
    std::string strategy;
    bool brings_batches = false;
  };
  simulate::Scenario scenario;
  std::vector<Entry> entries;
};

/// `invalid` names the flag, its value and what it takes; `not_found` the file of a trace that is not there.
Result<SimulationPlan> plan_simulation(const SimulateFlags& flags);

/// The first flag given that does not go with a JOB, which says everything itself.
std::optional<std::string> flag_beside_job(const SimulateFlags& flags);
/// The same of --from, which takes strategies and workers.
std::optional<std::string> flag_beside_run(const SimulateFlags& flags);

/// The same of --nodes, which simulates whole clusters.
std::optional<std::string> flag_beside_cluster(const SimulateFlags& flags);

/// "100MB", "1.5GiB", "4096": bytes; at least 1.
std::optional<double> parse_size(std::string_view text);

}  // namespace paceline::cli
