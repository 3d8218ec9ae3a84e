#include <algorithm>
#include <cstdio>
#include <memory>

#include "algorithms/simulate/job_json.h"
#include "algorithms/simulate/job_lines.h"
#include "cli/commands.h"
#include "cli/run_options.h"
#include "cli/simulate_cluster.h"
#include "cli/simulate_from.h"
#include "cli/simulate_one.h"
#include "cli/simulate_options.h"
#include "cli/simulate_plot.h"
#include "cli/simulate_view.h"
#include "cli/text_file.h"
#include "runtime/observe/atomic_file.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kChunk = 1 << 20;

/// Standard output, or a file that appears when everything is written.
class Output {
 public:
  static Result<Output> open(const std::string& path) {
    Output output;
    if (path.empty()) return output;
    auto file = observe::AtomicFile::create(path);
    if (!file) return fail(ErrorKind::invalid, "-o " + path + ": " + file.error().text);
    output.file_ = std::make_unique<observe::AtomicFile>(std::move(*file));
    return output;
  }
  Result<void> write(std::string_view text) {
    if (file_) return file_->write(text);
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return {};
    return fail_errno("write to standard output");
  }
  Result<void> close() {
    if (file_) return file_->commit();
    if (std::fflush(stdout) == 0) return {};
    return fail_errno("write to standard output");
  }

 private:
  std::unique_ptr<observe::AtomicFile> file_;
};

Result<void> write_lines(Output& output, const simulate::Outcome& outcome) {
  std::string lines;
  for (const simulate::Row& row : outcome.rows) {
    simulate::append_line(lines, row);
    if (lines.size() < kChunk) continue;
    PACELINE_TRY(output.write(lines));
    lines.clear();
  }
  simulate::append_line(lines, outcome.summary);
  return output.write(lines);
}

Result<void> simulate_job(const SimulateFlags& flags) {
  if (const auto other = flag_beside_job(flags)) {
    return fail(ErrorKind::invalid, *other + " is for simulations without a job file: " + flags.job +
                                        " says everything itself; give one or the other");
  }
  const auto text = read_text(flags.job, simulate::kJobTextMax);
  if (!text) return tl::unexpected(text.error());
  const std::string name = (flags.job == "-" ? "standard input" : flags.job) + ": ";
  const auto named = [&](const Error& error) { return fail(error.kind, name + error.text); };
  auto job = simulate::read_job(*text);
  if (!job) return named(job.error());
  const auto affordable = check_cost(simulate::cost_of(*job->problem, job->steps), flags.yes);
  if (!affordable) return named(affordable.error());
  auto output = Output::open(flags.output);
  if (!output) return tl::unexpected(output.error());
  const auto outcome = simulate_one(*job, job->strategy);
  if (!outcome) return named(outcome.error());
  PACELINE_TRY(flags.json ? write_lines(*output, *outcome) : output->write(job_text(*job, *outcome)));
  return output->close();
}

/// Figures of the scenario under one strategy.
Result<simulate::Figures> figures_under(const SimulationPlan::Entry& entry, const simulate::Scenario& scenario,
                                        const std::shared_ptr<const simulate::Problem>& problem) {
  const double lowest = problem->objective(simulate::optimum(simulate::scenario_workers(scenario)));
  simulate::Job job = simulate::scenario_job(scenario, problem, entry.strategy, entry.brings_batches);
  const auto outcome = simulate_one(job, entry.label);
  if (!outcome) return tl::unexpected(outcome.error());
  const auto batches = static_cast<double>(scenario.batches);
  return simulate::figures_of(job, *outcome, lowest,
                              {.of_row = entry.brings_batches ? 1 : batches, .of_step = batches});
}

Plot plot_of(const std::vector<SimulatedStrategy>& strategies, const simulate::Scenario& scenario) {
  Plot plot{.title = "Loss of " + std::to_string(scenario.workers) + " simulated workers, " +
                     std::to_string(scenario.steps) + " steps",
            .x_name = "virtual time, s",
            .y_name = "loss of the mean model, above the lowest",
            .lines = {}};
  for (const auto& [label, figures] : strategies) plot.lines.push_back({label, figures.curve});
  return plot;
}

bool ends_in(const std::string& path, std::string_view ending) { return path.ends_with(ending); }

Result<void> simulate_scenario(const SimulateFlags& flags) {
  const auto plan = plan_simulation(flags);
  if (!plan) return tl::unexpected(plan.error());
  if (!flags.output.empty() && !ends_in(flags.output, ".svg") && !ends_in(flags.output, ".html"))
    return fail(ErrorKind::invalid, "-o " + flags.output + ": give a name that ends in .svg or .html");
  const simulate::Scenario& scenario = plan->scenario;
  const auto is_base = [](const SimulationPlan::Entry& entry) { return entry.strategy == "allreduce"; };
  const auto base_at = std::find_if(plan->entries.begin(), plan->entries.end(), is_base);
  const bool has_base = base_at != plan->entries.end();
  const auto problem = simulate::scenario_problem(scenario);
  simulate::Cost cost = simulate::cost_of(*problem, scenario.steps);
  cost.time_s *= static_cast<double>(plan->entries.size() + (has_base ? 0 : 1));
  PACELINE_TRY(check_cost(cost, flags.yes));
  auto output = Output::open(flags.output);
  if (!output) return tl::unexpected(output.error());

  std::vector<SimulatedStrategy> done;
  for (const SimulationPlan::Entry& entry : plan->entries) {
    auto figures = figures_under(entry, scenario, problem);
    if (!figures) return tl::unexpected(figures.error());
    done.push_back({entry.label, std::move(*figures)});
  }
  auto base = has_base
                  ? Result<simulate::Figures>(done[static_cast<std::size_t>(base_at - plan->entries.begin())].figures)
                  : figures_under({"allreduce", "allreduce", false}, scenario, problem);
  if (!base) return tl::unexpected(base.error());

  const std::string table =
      scenario_table(done, *base, scenario) + "\n" + scenario_in_words(done, *base, scenario) + "\n";
  if (!flags.output.empty()) {
    const Plot plot = plot_of(done, scenario);
    PACELINE_TRY(output->write(ends_in(flags.output, ".svg") ? plot.svg() : plot.html(table)));
  }
  PACELINE_TRY(output->close());
  Output standard;
  PACELINE_TRY(standard.write(flags.json ? scenario_json(done, *base, scenario) : table));
  return standard.close();
}

constexpr const char* kFooter =
    "\nA job file says everything: a small problem, a strategy, and how long each worker computes at each step.\n"
    "The same file gives the same numbers to any program that follows docs/jobs.md. Without one, workers, delays\n"
    "and network are described by flags, and strategies are compared on a noisy problem made from the seed.\n"
    "With --from they are fitted to a run, and the answer is the time that it would have taken.\n"
    "With --nodes the head and the agents themselves run, under virtual time, while what --faults says goes wrong.\n"
    "\n"
    "Examples:\n"
    "  paceline simulate job.json --json\n"
    "  paceline simulate --compare 'allreduce,nonblocking,wagma' -w 16 --compute 'exponential(1s)' -o plot.html\n"
    "  paceline simulate -s 'wagma(late=skip)' --nodes 4 -w 8 --faults 'kill=10/min,kill-head=30/min'\n"
    "  paceline simulate --from last --compare 'allreduce,nonblocking' --workers 8\n";

}  // namespace

Action add_simulate(Flags app) {
  auto flags = std::make_shared<SimulateFlags>();
  Flags command = app.command("simulate", "Simulate a strategy under virtual time: a job file, or what flags describe");
  add_simulate_flags(command, *flags);
  command.footer([] { return strategies_in_words() + kFooter; });
  return [flags] {
    if (flags->from.empty() && flags->job.empty() && flags->strategy.empty() && flags->compare.empty()) {
      return report({ErrorKind::invalid,
                     "simulate: give a job file, --strategy or --compare with what is to be simulated, or --from with "
                     "a run; see paceline simulate --help"});
    }
    const auto done = flags->nodes           ? simulate_cluster(*flags)
                      : !flags->from.empty() ? simulate_from(*flags)
                      : !flags->job.empty()  ? simulate_job(*flags)
                                             : simulate_scenario(*flags);
    return done ? kDone : report(done.error());
  };
}

}  // namespace paceline::cli
