#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "algorithms/job/options.h"
#include "algorithms/job/resume.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/compile.h"
#include "cli/driver.h"
#include "cli/run_options.h"
#include "runtime/base/content_hash.h"
#include "runtime/base/json.h"
#include "runtime/observe/run_directory.h"

namespace paceline::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Result<fs::path> make_run_directory(const RunFlags& flags) {
  if (flags.run_directory.empty()) {
    auto made =
        observe::RunDirectory::create("runs", fs::path(flags.script).stem().string(), std::chrono::system_clock::now());
    if (!made) return tl::unexpected(made.error());
    return fs::absolute(made->path());
  }
  std::error_code failed;
  fs::create_directories(flags.run_directory, failed);
  if (failed) return fail(ErrorKind::invalid, "--run-dir " + flags.run_directory + ": " + failed.message());
  return fs::absolute(flags.run_directory);
}

/// A folder's name for the k-th strategy of a comparison: "2-wagma_late_skip_".
std::string folder_name(std::size_t k, const std::string& strategy) {
  std::string name = std::to_string(k + 1) + "-" + strategy.substr(0, 60);
  for (char& c : name) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    if (!kept) c = '_';
  }
  return name;
}

/// A script that ended well but was no training job although flags of one were given; of one that used nothing of ours
/// (it evaluates a model, say) there is a remark.
Result<void> check_it_ran(const fs::path& directory, const RunFlags& flags, const Place& place, const PlannedRun& run) {
  if (fs::exists(directory / "result.json")) return {};
  const std::string script = fs::path(flags.script).filename().string();
  json given = run.overrides;
  for (const char* kept : {"json", "label", "compare"}) given.erase(kept);
  if (!given.empty()) {
    std::string names;
    for (const auto& [name, value] : given.items())
      names += (names.empty() ? "" : ", ") +
               (name == "strategy" && !flags.compare.empty() ? "--compare" : job::flag_of(name));
    return fail(ErrorKind::internal, script + " ran no training job, so " + names +
                                         " had no effect: call paceline::run or paceline::Trainer's run in its main");
  }
  if (!place.own) return {};  // A cluster that was up may have started its fork server before.
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(place.directory, ignored))
    if (entry.path().filename().string().starts_with("fork-server-")) return {};
  std::fprintf(stderr, "paceline: %s started no task, no actor and no training job\n", script.c_str());
  return {};
}

Result<int> run_all(const RunFlags& flags) {
  const auto runs = plan_runs(flags);
  if (!runs) return tl::unexpected(runs.error());
  PACELINE_TRY(job::check_resume(runs->front().overrides.value("resume", "")));
  const Script script = script_of(flags);
  const auto program = executable_of(script);
  if (!program) return tl::unexpected(program.error());
  const auto script_hash = hash_of_file(flags.script);
  if (!script_hash) return tl::unexpected(script_hash.error());
  const auto place = find_place(flags.nodes);
  if (!place) return tl::unexpected(place.error());
  const auto base = make_run_directory(flags);
  if (!base) return tl::unexpected(base.error());

  if (flags.no_output) ::setenv("PACELINE_OUTPUT", "off", 1);
  const bool compare = !flags.compare.empty();
  if (const auto changed = changed_by_comparison(flags, *runs); !changed.empty() && !flags.json)
    std::printf("%s\n", changed.c_str());
  int worst = kDone;
  std::vector<Compared> compared;
  for (std::size_t k = 0; k < runs->size(); ++k) {
    const PlannedRun& run = (*runs)[k];
    const fs::path directory = compare ? *base / folder_name(k, run.label) : *base;
    if (compare && !flags.json) std::printf("\n%zu of %zu: %s\n", k + 1, runs->size(), run.label.c_str());
    std::fflush(stdout);
    json overrides = run.overrides;
    overrides["script"] = {
        {"path", fs::absolute(flags.script).string()}, {"hash", *script_hash}, {"parts", to_json(script.parts)}};
    const auto ended = run_driver(*program, arguments_of(flags), *place, overrides, directory);
    if (!ended) return tl::unexpected(ended.error());
    const int code = exit_code(*ended, *program);
    if (code == kInterrupted || code == kUsage) return code;  // The others would end the same way.
    if (code == kDone) PACELINE_TRY(check_it_ran(directory, flags, *place, run));
    worst = std::max(worst, code);
    if (compare) compared.push_back({run.label, code == kDone ? read_result(directory) : json(nullptr)});
  }
  if (compare && !flags.json) {
    std::printf("\n%s\n%s\nrun directory: %s\n", comparison_table(compared).c_str(),
                comparison_in_words(compared).c_str(), base->c_str());
  }
  return worst;
}

std::string strategies_footer() {
  return strategies_in_words() +
         "\nExamples:\n"
         "  paceline run examples/fashion_mnist.cpp --workers 4\n"
         "  paceline run examples/fashion_mnist.cpp --workers 4 --slow 3:4x --compare 'allreduce,nonblocking'\n"
         "  paceline run job.cpp model.cpp -I include -l fftw3f\n"
         "  paceline run ./my_program --strategy 'wagma(group=2,sync=10)' -- --flag-of-my-program\n";
}

}  // namespace

Action add_run(Flags app) {
  auto flags = std::make_shared<RunFlags>();
  Flags command = app.command("run", "Run an actor script; without a cluster that is up, on one of its own");
  add_run_flags(command, *flags);
  command.footer(strategies_footer);
  return [flags] {
    const auto code = run_all(*flags);
    return code ? *code : report(code.error());
  };
}

}  // namespace paceline::cli
