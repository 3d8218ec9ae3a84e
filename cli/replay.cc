#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/compile.h"
#include "cli/driver.h"
#include "cli/recorded/decision_lines.h"
#include "cli/recorded/json_fields.h"
#include "cli/recorded/recorded_decisions.h"
#include "cli/recorded/run_times.h"
#include "cli/recorded/run_trace.h"
#include "runtime/base/json.h"
#include "runtime/observe/format.h"
#include "runtime/observe/run_directory.h"
#include "runtime/observe/table.h"

namespace paceline::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using recorded::WorkerTime;

struct ReplayFlags {
  std::string run;
  std::string run_directory;
  bool simulate = false;
  bool decisions = false;
  bool json = false;
};

/// The options of the run, but for its place, its made-up delays and its time limit: order comes from the record.
json options_of(const recorded::RecordedRun& run, const ReplayFlags& flags) {
  json options = run.options;
  for (const char* name : {"run_directory", "json", "slow", "straggle", "time_limit_s"}) options.erase(name);
  if (flags.json) options["json"] = true;
  options["replay"] = run.directory.string();
  options["replay_build"] = recorded::text_of(run.program, "build");
  options["node_of"] = run.node_of;
  options["begin_with"] = run.result.value("begun_with", 0);
  options["script"] = run.program.value("script", json::object());
  return options;
}

bool has_workers_that_came_back(const recorded::RecordedRun& run) {
  return std::any_of(run.records.begin(), run.records.end(), [](const auto& record) {
    const auto& decisions = record.second.decisions;
    return std::any_of(decisions.begin(), decisions.end(),
                       [](const auto& d) { return d.kind == scheduler::Decision::Kind::returned; });
  });
}

Result<fs::path> program_of(const recorded::RecordedRun& run) {
  if (const double number = recorded::number(run.program, "run").value_or(1); number > 1)
    return fail(ErrorKind::invalid, run.directory.string() + observe::format(" is run %.0f", number) +
                                        " of its script: only a script's first run can be replayed");
  if (has_workers_that_came_back(run))
    return fail(ErrorKind::invalid,
                run.directory.string() +
                    " cannot be replayed: a worker came back, or joined, while it ran, and what state it then "
                    "had is not in the record; --simulate and --decisions read it all the same");
  if (run.result.contains("changes"))
    return fail(ErrorKind::invalid, run.directory.string() +
                                        " cannot be replayed: its strategy was changed while it ran, and the record is "
                                        "of its first one; --simulate and --decisions read that");
  const auto changes = recorded::changes_since(run);
  if (!changes.empty()) {
    std::string text = "a replay needs what the run was made of, but since then ";
    for (const auto& change : changes) text += (&change == &changes.front() ? "" : "; ") + change;
    return fail(ErrorKind::invalid, text);
  }
  const json script = run.program.value("script", json::object());
  if (script.empty()) return executable_of({recorded::text_of(run.program, "path")});
  return executable_of({recorded::text_of(script, "path"), parts_from_json(recorded::object_in(script, "parts"))});
}

Result<fs::path> make_directory(const ReplayFlags& flags) {
  if (!flags.run_directory.empty()) return fs::absolute(flags.run_directory);
  auto made = observe::RunDirectory::create("runs", "replay", std::chrono::system_clock::now());
  if (!made) return tl::unexpected(made.error());
  return fs::absolute(made->path());
}

/// A script may read files by relative paths.
Result<void> work_where_it_did(const recorded::RecordedRun& run) {
  const std::string directory = recorded::text_of(run.program, "directory");
  if (directory.empty()) return {};
  std::error_code failed;
  fs::current_path(directory, failed);
  if (failed) return fail(ErrorKind::not_found, "the run worked in " + directory + ": " + failed.message());
  return {};
}

/// Where the data are is a part of the run.
void take_environment(const json& environment) {
  const std::string data = recorded::text_of(environment, "PACELINE_DATA");
  if (!data.empty()) ::setenv("PACELINE_DATA", data.c_str(), 1);
}

int tell(const recorded::RecordedRun& run, const std::vector<std::string>& differ, bool as_json) {
  if (as_json) {
    const json event{
        {"event", "replay"}, {"run", run.directory.string()}, {"bit_identical", differ.empty()}, {"differs", differ}};
    std::printf("%s\n", json_text(event).c_str());
  } else if (differ.empty()) {
    std::printf("weights are bit-identical to %s (%zu workers)\n", run.directory.c_str(), run.node_of.size());
  } else {
    std::printf("weights differ from %s:\n", run.directory.c_str());
    for (const auto& line : differ) std::printf("  %s\n", line.c_str());
  }
  return differ.empty() ? kDone : kFailed;
}

std::string in_seconds(double s) { return observe::format("%.2f s", s); }
std::string percent(double part, double whole) {
  return observe::format("%.1f %%", whole > 0 ? 100 * part / whole : 0);
}

json to_json(const WorkerTime& worker) {
  return {
      {"worker", worker.rank},         {"compute_s", worker.compute_s},         {"abandoned_s", worker.abandoned_s},
      {"waiting_s", worker.waiting_s}, {"averaging_s", worker.averaging_s},     {"evaluation_s", worker.evaluation_s},
      {"awaited_s", worker.awaited_s}, {"contributions", worker.contributions}, {"late", worker.late},
      {"missed", worker.missed}};
}

/// One row each, then all of them together and what part of all time each column is.
std::string time_table(const std::vector<WorkerTime>& workers, const WorkerTime& all) {
  observe::Table table({"worker", "compute", "abandoned", "waiting", "averaging", "evaluation", "late", "awaited"});
  const auto add = [&](const std::string& name, const WorkerTime& w) {
    table.add({name, in_seconds(w.compute_s), in_seconds(w.abandoned_s), in_seconds(w.waiting_s),
               in_seconds(w.averaging_s), in_seconds(w.evaluation_s),
               std::to_string(w.late) + "/" + std::to_string(w.contributions + w.missed), in_seconds(w.awaited_s)});
  };
  for (const auto& worker : workers) add(std::to_string(worker.rank), worker);
  add("all", all);
  const double sum = all.sum_s();
  table.add({"share", percent(all.compute_s, sum), percent(all.abandoned_s, sum), percent(all.waiting_s, sum),
             percent(all.averaging_s, sum), percent(all.evaluation_s, sum),
             percent(static_cast<double>(all.late), static_cast<double>(all.contributions + all.missed)),
             percent(all.awaited_s, sum)});
  return table.text();
}

/// No processes: the core goes through the recorded decisions in virtual time.
Result<int> simulate(const recorded::RecordedRun& run, bool as_json) {
  const auto trace = recorded::read_trace(run.directory);
  if (!trace) return tl::unexpected(trace.error());
  if (!*trace)
    return fail(ErrorKind::not_found,
                run.directory.string() + "/trace.json is missing, which says what its workers did");
  const auto workers = recorded::reenact(run, **trace);
  if (!workers) return tl::unexpected(workers.error());
  WorkerTime all;
  for (const auto& worker : *workers) all.add(worker);
  const auto critical = std::max_element(workers->begin(), workers->end(),
                                         [](const auto& a, const auto& b) { return a.awaited_s < b.awaited_s; });
  const double sum = all.sum_s();
  if (as_json) {
    json rows = json::array();
    for (const auto& worker : *workers) rows.push_back(to_json(worker));
    const json event{{"event", "times"},
                     {"run", run.directory.string()},
                     {"duration_s", (*trace)->duration_s},
                     {"workers", rows},
                     {"critical", critical->awaited_s > 0 ? json(critical->rank) : json(nullptr)}};
    std::printf("%s\n", json_text(event).c_str());
    return kDone;
  }
  std::printf("%s, %zu workers, %s\n\n%s\n", recorded::text_of(run.options, "strategy").c_str(), workers->size(),
              in_seconds((*trace)->duration_s).c_str(), time_table(*workers, all).c_str());
  if (critical->awaited_s > 0.001 * sum) {
    std::printf("worker %d is the critical one: others waited %s for it to come last, %s of all workers' time\n",
                critical->rank, in_seconds(critical->awaited_s).c_str(), percent(critical->awaited_s, sum).c_str());
  } else {
    std::printf("nobody was waited for\n");
  }
  return kDone;
}

/// Node by node, in each one's own order.
int show_decisions(const recorded::RecordedRun& run, bool as_json) {
  Instant start = Instant::max();
  for (const auto& [node, record] : run.records)
    for (const auto& d : record.decisions)
      if (d.at != Instant{}) start = std::min(start, d.at);
  for (const auto& [node, record] : run.records)
    for (const auto& d : record.decisions)
      std::printf("%s\n", as_json ? json_text(recorded::decision_json(NodeId{node}, d, start)).c_str()
                                  : recorded::decision_line(NodeId{node}, d, start).c_str());
  return kDone;
}

Result<int> replay(const ReplayFlags& flags) {
  const auto run = recorded::read_recorded(flags.run);
  if (!run) return tl::unexpected(run.error());
  if (flags.decisions) return show_decisions(*run, flags.json);
  if (!run->lost_nodes.empty() && flags.simulate)
    return fail(ErrorKind::invalid, run->directory.string() + " lost node " + std::to_string(*run->lost_nodes.begin()) +
                                        " on the way, and what its workers did then is not known: replay it without "
                                        "--simulate, or --decisions shows what there is");
  if (flags.simulate) return simulate(*run, flags.json);
  const auto program = program_of(*run);
  if (!program) return tl::unexpected(program.error());
  std::vector<std::string> arguments;
  for (const json& word : run->program.value("arguments", json::array()))
    arguments.push_back(word.is_string() ? word.get<std::string>() : json_text(word));
  take_environment(run->environment);
  const std::int64_t nodes = 1 + *std::max_element(run->node_of.begin(), run->node_of.end());
  auto place = find_place(std::nullopt, nodes);
  if (!place) return tl::unexpected(place.error());
  const auto directory = make_directory(flags);
  if (!directory) return tl::unexpected(directory.error());
  PACELINE_TRY(work_where_it_did(*run));
  const auto ended = run_driver(*program, arguments, *place, options_of(*run, flags), *directory);
  if (!ended) return tl::unexpected(ended.error());
  if (const int code = exit_code(*ended, *program); code != kDone) return code;
  return tell(*run, recorded::differing_models(run->result, read_result(*directory)), flags.json);
}

}  // namespace

Action add_replay(Flags app) {
  auto flags = std::make_shared<ReplayFlags>();
  Flags command = app.command("replay", "Run a run again with the same decisions: it ends with the same weights");
  command.add("run", &flags->run, "a run directory").required();
  const Flag directory = command.add("--run-dir", &flags->run_directory, "where to write; default runs/DATE-replay");
  Flag simulate = command.add("--simulate", &flags->simulate,
                              "start nothing: go through the decisions in virtual time, and show where time "
                              "went");
  simulate.excludes(directory);
  command
      .add("--decisions", &flags->decisions,
           "start nothing: print what each node's averagings went by, who was late for which among it")
      .excludes(directory)
      .excludes(simulate);
  command.add("--json", &flags->json, "events as JSON lines on stdout");
  return [flags] {
    const auto code = replay(*flags);
    return code ? *code : report(code.error());
  };
}

}  // namespace paceline::cli
