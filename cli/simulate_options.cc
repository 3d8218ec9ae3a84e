#include "cli/simulate_options.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "algorithms/parse.h"
#include "algorithms/simulate/job_json.h"
#include "algorithms/strategy.h"
#include "cli/run_options.h"
#include "cli/text_file.h"
#include "runtime/observe/format.h"

namespace paceline::cli {

namespace {

constexpr std::int64_t kStepsMax = 1'000'000'000;

tl::unexpected<Error> bad_option(const std::string& flag, const std::string& value, const std::string& takes) {
  return fail(ErrorKind::invalid, flag + " " + value + ": " + takes);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Time above 0, at most what a job may say.
std::optional<double> time_above_zero(std::string_view word) {
  const auto time = algorithms::read_duration(word);
  if (!time || *time <= Duration(0) || seconds(*time) > simulate::kTimeMost) return std::nullopt;
  return seconds(*time);
}

std::optional<std::int32_t> worker_in(std::string_view word, std::int32_t workers) {
  const auto rank = algorithms::read_integer(word);
  if (!rank || *rank < 0 || *rank >= workers) return std::nullopt;
  return static_cast<std::int32_t>(*rank);
}

std::string numbered(std::int32_t workers) { return "workers are numbered 0 to " + std::to_string(workers - 1); }

/// The flags that `paceline run` has as well; it checks them.
RunFlags run_flags(const SimulateFlags& flags, std::int32_t workers) {
  RunFlags run;
  run.give("workers", std::to_string(flags.workers.value_or(workers)));
  run.give("strategy", flags.strategy);
  run.compare = flags.compare;
  if (flags.accumulate) run.give("accumulate", std::to_string(*flags.accumulate));
  run.given["slow"].each = flags.slow;
  if (!flags.straggle.empty() && !flags.straggle.starts_with("worker-")) run.give("straggle", flags.straggle);
  return run;
}

Result<void> read_compute(const SimulateFlags& flags, simulate::Scenario& scenario) {
  if (flags.compute.empty()) return {};
  const auto file = simulate::traced_file(flags.compute);
  if (!file) {
    auto distribution = simulate::parse_distribution(flags.compute);
    if (!distribution) return bad_option("--compute", flags.compute, distribution.error().text);
    scenario.compute = std::move(*distribution);
    return {};
  }
  const auto content = read_text(*file, simulate::kJobTextMax);
  if (!content) return fail(content.error().kind, "--compute " + flags.compute + ": " + content.error().text);
  auto trace = simulate::read_trace(*content);
  if (!trace) return bad_option("--compute", flags.compute, trace.error().text);
  scenario.compute = std::move(*trace);
  return {};
}

/// What `paceline run` has checked, or "worker-3:40ms".
Result<void> read_straggle(const SimulateFlags& flags, simulate::Scenario& scenario) {
  if (flags.straggle.empty()) return {};
  std::string_view text = flags.straggle;
  const bool named = text.starts_with("worker-");
  if (named) text.remove_prefix(7);
  const auto parts = split(text, ':');
  const auto delay = parts.size() == 2 ? time_above_zero(parts[1]) : std::nullopt;
  const auto number = algorithms::read_integer(parts[0]);
  if (!delay || !number || *number < 0)
    return bad_option("--straggle", flags.straggle,
                      "give count:delay such as 1:40ms (so many random workers a step) or worker-3:40ms");
  scenario.straggle.delay_s = *delay;
  if (!named) {
    scenario.straggle.count = static_cast<std::int32_t>(*number);
    return {};
  }
  scenario.straggle.worker = worker_in(parts[0], scenario.workers);
  if (!scenario.straggle.worker) return bad_option("--straggle", flags.straggle, numbered(scenario.workers));
  return {};
}

/// "3:4x,5:2x", as `paceline run` has checked it.
void read_slow(const std::string& text, simulate::Scenario& scenario) {
  for (std::string_view part : split(text, ',')) {
    const auto pair = split(part, ':');
    std::string_view factor = pair[1];
    if (factor.ends_with('x')) factor.remove_suffix(1);
    scenario.slow[static_cast<std::int32_t>(*algorithms::read_integer(pair[0]))] = *algorithms::read_real(factor);
  }
}

Result<void> read_network(const SimulateFlags& flags, simulate::Scenario& scenario) {
  if (flags.network.empty()) return {};
  for (std::string_view part : split(flags.network, ',')) {
    const auto pair = split(part, '=');
    std::string_view value = pair.size() == 2 ? pair[1] : "";
    if (pair[0] == "latency") {
      const auto time = algorithms::read_duration(value);
      if (time && seconds(*time) <= simulate::kTimeMost) {
        scenario.latency_s = seconds(*time);
        continue;
      }
    } else if (pair[0] == "bandwidth") {
      if (value.ends_with("/s")) value.remove_suffix(2);
      if (const auto size = parse_size(value)) {
        scenario.bandwidth_Bps = *size;
        continue;
      }
    }
    return bad_option("--network", flags.network,
                      std::string(part) +
                          " is not understood; give latency=TIME and bandwidth=SIZE a second, such as "
                          "latency=50us,bandwidth=10Gbit/s");
  }
  return {};
}

Result<void> read_failures(const SimulateFlags& flags, simulate::Scenario& scenario) {
  std::set<std::int32_t> seen;
  for (const std::string& given : flags.fail) {
    for (std::string_view part : split(given, ',')) {
      const auto at = split(part, '@');
      const auto times = split(at.size() == 2 ? at[1] : std::string_view(), '+');
      const auto from = time_above_zero(times[0]);
      const auto down = times.size() == 2 ? time_above_zero(times[1]) : std::nullopt;
      if (!algorithms::read_integer(at[0]) || !from || times.size() > 2 || (times.size() == 2 && !down))
        return bad_option("--fail", std::string(part),
                          "give worker@time such as 2@30s (it dies), or 2@30s+10s (it stands still for 10 s)");
      const auto worker = worker_in(at[0], scenario.workers);
      if (!worker) return bad_option("--fail", std::string(part), numbered(scenario.workers));
      if (!seen.insert(*worker).second) return bad_option("--fail", std::string(part), "a worker can fail once only");
      scenario.failures.push_back({Rank{*worker}, *from, down});
    }
  }
  const auto dead = std::count_if(scenario.failures.begin(), scenario.failures.end(),
                                  [](const simulate::Job::Failure& failure) { return !failure.down_s; });
  if (dead == scenario.workers) return fail(ErrorKind::invalid, "--fail: no worker is left; let one live");
  return {};
}

Result<void> read_numbers(const SimulateFlags& flags, simulate::Scenario& scenario) {
  if (flags.steps && (*flags.steps < 1 || *flags.steps > kStepsMax))
    return bad_option("--steps", std::to_string(*flags.steps), "give a number from 1 to " + std::to_string(kStepsMax));
  if (flags.lr && !(*flags.lr >= 0 && *flags.lr <= 100))
    return bad_option("--lr", observe::format("%g", *flags.lr), "give a number from 0 to 100");
  if (!flags.bytes.empty()) {
    scenario.model_bytes = parse_size(flags.bytes);
    if (!scenario.model_bytes) return bad_option("--bytes", flags.bytes, "give a size such as 100MB or 1GiB");
  }
  scenario.steps = flags.steps.value_or(scenario.steps);
  scenario.lr = flags.lr.value_or(scenario.lr);
  scenario.seed = flags.seed.value_or(scenario.seed);
  return {};
}

/// Of what only flags can describe.
std::optional<std::string> scenario_flag_given(const SimulateFlags& flags) {
  const std::pair<const char*, bool> given[] = {
      {"--steps", flags.steps.has_value()},  {"--accumulate", flags.accumulate.has_value()},
      {"--compute", !flags.compute.empty()}, {"--straggle", !flags.straggle.empty()},
      {"--slow", !flags.slow.empty()},       {"--network", !flags.network.empty()},
      {"--bytes", !flags.bytes.empty()},     {"--fail", !flags.fail.empty()},
      {"--nodes", flags.nodes.has_value()},  {"--faults", !flags.faults.empty()},
      {"--lr", flags.lr.has_value()},        {"--seed", flags.seed.has_value()}};
  for (const auto& [name, is_given] : given) {
    if (is_given) return name;
  }
  return std::nullopt;
}

}  // namespace

void add_simulate_flags(Flags app, SimulateFlags& flags) {
  app.add("job", &flags.job, "a job file (docs/jobs.md); - reads standard input");
  app.add("--json", &flags.json, "JSON lines: a row a worker and step, then a summary; without JOB one a strategy");
  app.add("--yes", &flags.yes, "simulate even what takes very long or much memory");
  app.add("--output,-o", &flags.output, "with JOB: where to write instead of stdout; else plot.svg or plot.html");
  const Flag from =
      app.add("--from", &flags.from,
              "a run's directory, or last: what its workers and averages took is fitted to its trace, and --strategy, "
              "--compare, --workers and --without-slow say what is to be different");
  app.add("--without-slow", &flags.without_slow, "with --from: this worker takes the times of the median one")
      .needs(from);
  const std::string group = "Without JOB";
  app.add("--strategy,-s", &flags.strategy, "how workers average, such as 'wagma(group=2,sync=10)'").group(group);
  app.add("--compare", &flags.compare, "strategies separated by commas: one table of all").group(group);
  app.add("--workers,-w", &flags.workers, "how many; default 4").group(group);
  app.add("--steps", &flags.steps, "of each worker; default 200").group(group);
  app.add("--accumulate", &flags.accumulate, "mini-batches a step").group(group);
  app.add("--compute", &flags.compute,
          "time of a mini-batch: " + std::string(simulate::kDistributionForms) + "; default constant(1s)")
      .group(group);
  app.add("--straggle", &flags.straggle,
          "count:delay, such as 1:40ms: each step that many random workers take so much longer; worker-3:40ms: "
          "always this one")
      .group(group);
  app.add("--slow", &flags.slow, "worker:factor, such as 3:4x: worker 3 takes 4 times as long").repeated().group(group);
  app.add("--network", &flags.network, "latency=50us,bandwidth=10Gbit/s; default: no time at all").group(group);
  app.add("--bytes", &flags.bytes, "size of the model on the network, such as 100MB; default: the problem's own 256")
      .group(group);
  app.add("--fail", &flags.fail, "worker@time, such as 2@30s: worker 2 dies then; 2@30s+10s: it freezes for 10 s")
      .repeated()
      .group(group);
  const Flag nodes = app.add("--nodes", &flags.nodes,
                             "simulate the cluster itself, head and agents as they are in processes: so many nodes, "
                             "and what --faults says goes wrong")
                         .group(group);
  app.add("--faults", &flags.faults,
          "with --nodes: how often what goes wrong, such as kill=1/min,kill-head=2/h,freeze=6/min; of kill, "
          "kill-agent, kill-head, freeze, freeze-node, freeze-head, cut and cut-one-way")
      .needs(nodes)
      .group(group);
  app.add("--lr", &flags.lr, "learning rate; default 0.1").group(group);
  app.add("--seed", &flags.seed, "of times and gradient noise; default 1").group(group);
}

Result<SimulationPlan> plan_simulation(const SimulateFlags& flags) {
  SimulationPlan plan;
  simulate::Scenario& scenario = plan.scenario;
  const auto runs = plan_runs(run_flags(flags, scenario.workers));
  if (!runs) return tl::unexpected(runs.error());
  scenario.workers = static_cast<std::int32_t>(flags.workers.value_or(scenario.workers));
  for (const PlannedRun& run : *runs) {
    const std::string text = run.overrides.value("strategy", run.label);
    const auto strategy = algorithms::parse_strategy(text, scenario.workers);
    if (!strategy) return tl::unexpected(strategy.error());
    const bool brings = strategy->brings_batches();
    if (brings) scenario.batches = strategy->batches;
    if (!brings && run.overrides.contains("accumulate")) scenario.batches = run.overrides["accumulate"];
    plan.entries.push_back({run.label, text, brings});
  }
  const std::string slow = runs->front().overrides.value("slow", "");
  if (!slow.empty()) read_slow(slow, scenario);
  PACELINE_TRY(read_numbers(flags, scenario));
  PACELINE_TRY(read_straggle(flags, scenario));
  PACELINE_TRY(read_network(flags, scenario));
  PACELINE_TRY(read_failures(flags, scenario));
  PACELINE_TRY(read_compute(flags, scenario));
  return plan;
}

std::optional<std::string> flag_beside_job(const SimulateFlags& flags) {
  if (!flags.from.empty()) return "--from";
  if (flags.without_slow) return "--without-slow";
  if (!flags.strategy.empty()) return "--strategy";
  if (!flags.compare.empty()) return "--compare";
  if (flags.workers) return "--workers";
  return scenario_flag_given(flags);
}

std::optional<std::string> flag_beside_run(const SimulateFlags& flags) {
  if (!flags.output.empty()) return "--output";
  return scenario_flag_given(flags);
}

std::optional<std::string> flag_beside_cluster(const SimulateFlags& flags) {
  const std::pair<const char*, bool> given[] = {{"a job file", !flags.job.empty()},
                                                {"--from", !flags.from.empty()},
                                                {"--accumulate", flags.accumulate.has_value()},
                                                {"--straggle", !flags.straggle.empty()},
                                                {"--slow", !flags.slow.empty()},
                                                {"--network", !flags.network.empty()},
                                                {"--bytes", !flags.bytes.empty()},
                                                {"--fail", !flags.fail.empty()},
                                                {"--output", !flags.output.empty()}};
  for (const auto& [name, is_given] : given) {
    if (is_given) return name;
  }
  return std::nullopt;
}

std::optional<double> parse_size(std::string_view text) {
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"kbit", 125},   {"Mbit", 125e3}, {"Gbit", 125e6}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824},
      {"TiB", 0x1p40}, {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},   {"TB", 1e12},     {"B", 1}};
  double unit = 1;
  for (const auto& [name, factor] : kUnits) {
    if (!text.ends_with(name)) continue;
    text.remove_suffix(name.size());
    unit = factor;
    break;
  }
  const auto number = algorithms::read_real(text);
  if (!number || !(*number * unit >= 1) || *number * unit > 1e18) return std::nullopt;
  return *number * unit;
}

}  // namespace paceline::cli
