#include "cli/simulate_from.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "algorithms/strategy.h"
#include "cli/recorded/json_fields.h"
#include "cli/run_options.h"
#include "cli/simulate_one.h"
#include "cli/simulate_view.h"
#include "runtime/base/json.h"
#include "runtime/observe/table.h"

namespace paceline::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using recorded::Activity;

/// A run and the model of it.
struct Fitted {
  fs::path directory;
  simulate::Measured run;
  simulate::Fit fit;
  double recorded_s = 0;
  double simulated_s = 0;
};

struct Answer {
  std::string strategy;
  std::int32_t workers;
  double time_s;
};

Result<fs::path> directory_of(const std::string& given) {
  const fs::path directory =
      given == "last" ? recorded::newest_run("runs", recorded::Replays::do_not_count) : fs::path(given);
  if (directory.empty()) return fail(ErrorKind::not_found, "--from last: there is no run in runs/; name one");
  const auto runs = recorded::runs_in(directory);
  if (runs.front() == directory) return directory;
  return fail(ErrorKind::invalid, directory.string() + " is a comparison of " + std::to_string(runs.size()) +
                                      " runs: name one of them, such as " + runs.front().string());
}

simulate::Measured::Worker steps_in(const recorded::Track& track, std::int64_t first) {
  simulate::Measured::Worker worker;
  double done_at = 0;
  for (const recorded::Span& span : track.spans) {
    const std::int64_t step = span.update - first;
    if (span.update < 0 || step < 0) continue;
    if (span.activity == Activity::compute || span.activity == Activity::abandoned) {
      worker.steps.push_back(
          {.step = step, .compute_s = span.end_s - span.begin_s, .abandoned = span.activity == Activity::abandoned});
      done_at = span.end_s;
    } else if (span.activity == Activity::wait && !worker.steps.empty() && worker.steps.back().step == step) {
      worker.steps.back().answered_s = span.end_s - done_at;
    }
  }
  return worker;
}

/// Mini-batches that each worker finished: its part of all of them, as of the samples.
void count_batches(const recorded::RunHistory& run, simulate::Measured& measured) {
  const double nominal = static_cast<double>(measured.steps) * static_cast<double>(measured.batches) *
                         static_cast<double>(measured.workers.size());
  const double all = nominal - recorded::number(run.result, "abandoned_batches").value_or(0);
  double samples = 0;
  for (const auto& [rank, count] : run.samples) samples += static_cast<double>(count);
  for (const auto& [rank, count] : run.samples) {
    if (rank < 0 || static_cast<std::size_t>(rank) >= measured.workers.size() || samples <= 0) continue;
    measured.workers[static_cast<std::size_t>(rank)].batches_done = all * static_cast<double>(count) / samples;
  }
}

Result<double> simulated(const simulate::Fit& fit, const simulate::WhatIf& what, bool yes) {
  auto job = simulate::job_of(fit, what);
  if (!job) return tl::unexpected(job.error());
  PACELINE_TRY(check_cost(simulate::cost_of(*job->problem, job->steps), yes));
  const auto outcome = simulate_one(*job, what.strategy);
  if (!outcome) return tl::unexpected(outcome.error());
  return seconds(outcome->summary.time);
}

Result<Fitted> fitted(const fs::path& directory, bool yes) {
  const auto named = [&](const Error& error) { return fail(error.kind, directory.string() + ": " + error.text); };
  const auto run = recorded::read_run(directory);
  if (!run) return tl::unexpected(run.error());
  const auto trace = recorded::read_trace(directory);
  if (!trace) return tl::unexpected(trace.error());
  auto measured = measured_of(*run, *trace);
  if (!measured) return named(measured.error());
  auto fit = simulate::fit(*measured);
  if (!fit) return named(fit.error());
  const simulate::WhatIf same{.strategy = measured->strategy,
                              .workers = static_cast<std::int32_t>(measured->workers.size()),
                              .steps = measured->steps};
  const auto time = simulated(*fit, same, yes);
  if (!time) return named(time.error());
  return Fitted{directory, std::move(*measured), std::move(*fit), *recorded::number(run->result, "train_s"), *time};
}

/// What is asked, labels first: at the run's number of mini-batches a step.
Result<std::vector<std::pair<std::string, std::string>>> strategies_asked(const SimulateFlags& flags,
                                                                          const simulate::Measured& run,
                                                                          std::int32_t workers) {
  RunFlags asked;
  const auto asked_for = static_cast<std::int32_t>(flags.workers.value_or(workers));
  asked.give("workers", std::to_string(asked_for));
  asked.give("strategy", flags.strategy.empty() && flags.compare.empty() ? run.strategy : flags.strategy);
  asked.compare = flags.compare;
  const auto plain = plan_runs(asked);
  if (!plain) return tl::unexpected(plain.error());
  for (const PlannedRun& one : *plain) {
    const auto strategy = algorithms::parse_strategy(one.label, asked_for);
    if (!strategy) return tl::unexpected(strategy.error());
    if (strategy->brings_batches() && strategy->batches != run.batches &&
        one.label.find("batches") != std::string::npos)
      return fail(ErrorKind::invalid, one.label + ": the run had " + std::to_string(run.batches) +
                                          " mini-batches an update; leave batches out, and it has as many");
  }
  asked.give("accumulate", std::to_string(run.batches));
  const auto runs = plan_runs(asked);
  if (!runs) return tl::unexpected(runs.error());
  std::vector<std::pair<std::string, std::string>> strategies;
  for (const PlannedRun& one : *runs) strategies.emplace_back(one.label, one.overrides["strategy"]);
  return strategies;
}

Result<std::vector<Answer>> answers(const SimulateFlags& flags, const Fitted& base) {
  const auto recorded = static_cast<std::int32_t>(base.run.workers.size());
  const auto strategies = strategies_asked(flags, base.run, recorded);
  if (!strategies) return tl::unexpected(strategies.error());
  simulate::WhatIf what{.strategy = base.run.strategy,
                        .workers = static_cast<std::int32_t>(flags.workers.value_or(recorded)),
                        .steps = base.run.steps};
  if (flags.without_slow) {
    if (*flags.without_slow < 0 || *flags.without_slow >= std::min(recorded, what.workers))
      return fail(ErrorKind::invalid, "--without-slow " + std::to_string(*flags.without_slow) +
                                          ": workers are numbered 0 to " +
                                          std::to_string(std::min(recorded, what.workers) - 1));
    what.mended = Rank{static_cast<std::int32_t>(*flags.without_slow)};
  }
  std::vector<Answer> made;
  for (const auto& [label, strategy] : *strategies) {
    what.strategy = strategy;
    const auto time = simulated(base.fit, what, flags.yes);
    if (!time) return tl::unexpected(time.error());
    made.push_back({label, what.workers, *time});
  }
  return made;
}

std::string fit_in_words(const Fitted& base) {
  const double error = base.simulated_s - base.recorded_s;
  char text[200];
  std::snprintf(text, sizeof text, " in %.3f s; simulated, in %.3f s: %.3f s (%.1f %%) %s.", base.recorded_s,
                base.simulated_s, std::abs(error), 100 * std::abs(error) / base.recorded_s,
                error < 0 ? "too short" : "too long");
  return "Fit to " + base.directory.string() + ": " + std::to_string(base.run.workers.size()) + " workers made " +
         std::to_string(base.run.steps) + " updates under " + base.run.strategy + text;
}

std::string guessed_in_words(const Fitted& base) {
  std::string text;
  for (const Rank rank : base.fit.guessed)
    text += "Worker " + to_string(rank) + " never finished a mini-batch: what waits for it is a guess.\n";
  return text;
}

std::string table_of(const Fitted& base, const std::vector<Answer>& answers) {
  observe::Table table({"strategy", "workers", "time", "an update", "speed-up"});
  const auto add = [&](const std::string& name, std::size_t workers, double time_s) {
    char speed[32];
    std::snprintf(speed, sizeof speed, "%.2fx", base.recorded_s / time_s);
    table.add({name, std::to_string(workers), time_in_words(time_s),
               time_in_words(time_s / static_cast<double>(base.run.steps)), speed});
  };
  add(base.run.strategy + ", recorded", base.run.workers.size(), base.recorded_s);
  for (const Answer& answer : answers) add(answer.strategy, static_cast<std::size_t>(answer.workers), answer.time_s);
  return table.text();
}

std::string lines_of(const Fitted& base, const std::vector<Answer>& answers) {
  json guessed = json::array();
  for (const Rank rank : base.fit.guessed) guessed.push_back(rank.value);
  const double error = base.simulated_s - base.recorded_s;
  std::string lines = json_text(json{{"fit", true},
                                     {"run", base.directory.string()},
                                     {"strategy", base.run.strategy},
                                     {"workers", base.run.workers.size()},
                                     {"updates", base.run.steps},
                                     {"recorded_s", base.recorded_s},
                                     {"simulated_s", base.simulated_s},
                                     {"error_s", error},
                                     {"error_share", error / base.recorded_s},
                                     {"exchange_s", base.fit.exchange_s},
                                     {"guessed", guessed}}) +
                      "\n";
  for (const Answer& answer : answers) {
    lines += json_text(json{{"strategy", answer.strategy},
                            {"workers", answer.workers},
                            {"time_s", answer.time_s},
                            {"step_s", answer.time_s / static_cast<double>(base.run.steps)},
                            {"speed_up", base.recorded_s / answer.time_s}}) +
             "\n";
  }
  return lines;
}

}  // namespace

Result<simulate::Measured> measured_of(const recorded::RunHistory& run,
                                       const std::optional<recorded::RunTrace>& trace) {
  const auto bad = [](const std::string& text) { return fail(ErrorKind::invalid, text); };
  if (!run.ended || run.failed) return bad(run.outcome + "; take a run that came to its end");
  for (const char* const moves : {"left", "returned", "joined", "drained", "begun_with"})
    if (run.result.contains(moves))
      return bad("workers left or came while it ran; take a run in which all were there from the start to the end");
  const double workers = static_cast<double>(run.workers());
  const auto updates = recorded::number(run.result, "updates").value_or(0);
  if (workers < 1 || workers > 4096) return bad("it does not say how many workers it had");
  if (!(updates > static_cast<double>(run.first_update)) || !(recorded::number(run.result, "train_s").value_or(0) > 0))
    return bad("it has no steps");
  if (!trace) return bad("it has no trace (trace.json), which tells what each step took");

  simulate::Measured measured;
  measured.strategy = recorded::text_of(run.options, "strategy");
  if (measured.strategy.empty()) measured.strategy = recorded::text_of(run.result, "strategy");
  const auto strategy = algorithms::parse_strategy(measured.strategy, static_cast<std::int32_t>(workers));
  if (!strategy) return tl::unexpected(strategy.error());
  measured.batches =
      strategy->brings_batches()
          ? strategy->batches
          : static_cast<std::int64_t>(std::max(1.0, recorded::number(run.options, "accumulate").value_or(1)));
  measured.steps = static_cast<std::int64_t>(updates) - run.first_update;
  measured.workers.resize(static_cast<std::size_t>(workers));
  for (const recorded::Track& track : trace->tracks) {
    if (track.rank < 0 || static_cast<std::size_t>(track.rank) >= measured.workers.size()) continue;
    measured.workers[static_cast<std::size_t>(track.rank)] = steps_in(track, run.first_update);
  }
  count_batches(run, measured);
  return measured;
}

Result<void> simulate_from(const SimulateFlags& flags) {
  if (const auto other = flag_beside_run(flags))
    return fail(ErrorKind::invalid, *other + " does not go with --from: the run says that itself");
  if (!flags.job.empty())
    return fail(ErrorKind::invalid, "--from and the job " + flags.job + " exclude each other: give one or the other");
  const auto directory = directory_of(flags.from);
  if (!directory) return tl::unexpected(directory.error());
  const auto base = fitted(*directory, flags.yes);
  if (!base) return tl::unexpected(base.error());
  const auto made = answers(flags, *base);
  if (!made) return tl::unexpected(made.error());
  const std::string text = flags.json ? lines_of(*base, *made)
                                      : fit_in_words(*base) + "\n\n" + table_of(*base, *made) + guessed_in_words(*base);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return fail_errno("write to standard output");
  return {};
}

}  // namespace paceline::cli
