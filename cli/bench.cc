#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>

#include "cli/bench/assets.h"
#include "cli/bench/benchmarks.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/compile.h"
#include "cli/driver.h"
#include "cli/script_cache.h"
#include "runtime/base/content_hash.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/json.h"
#include "runtime/observe/atomic_file.h"

namespace paceline::cli {

namespace {

namespace fs = std::filesystem;
using bench::kBenchmarks;

constexpr const char* kScriptFiles[] = {"benchmarks.cpp", "benchmarks.h", "measure.h"};

struct BenchFlags {
  std::vector<std::string> names;
  std::optional<double> seconds;
  std::int64_t rounds = 4;
  bool list = false;
  bool json = false;
};

std::vector<std::string_view> known_names() {
  std::vector<std::string_view> names;
  for (const auto& benchmark : kBenchmarks) names.emplace_back(benchmark.name);
  return names;
}

/// Those that were asked for, each once, in our order; all if none was named.
Result<std::vector<std::string>> chosen(const std::vector<std::string>& asked) {
  const auto known = known_names();
  for (const std::string& name : asked) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto meant = did_you_mean(name, known);
    return fail(ErrorKind::invalid,
                "there is no benchmark " + name +
                    (meant ? "; did you mean " + std::string(*meant) + "?" : ": `paceline bench --list` names all"));
  }
  std::vector<std::string> names;
  for (const auto name : known)
    if (asked.empty() || std::find(asked.begin(), asked.end(), name) != asked.end()) names.emplace_back(name);
  return names;
}

void list_all(bool as_json) {
  for (const auto& benchmark : kBenchmarks) {
    if (as_json) {
      std::puts(json_text(nlohmann::json{{"name", benchmark.name}, {"what", benchmark.what}}).c_str());
    } else {
      std::printf("%-25s  %s\n", benchmark.name, benchmark.what);
    }
  }
}

/// The script's files in a folder of the cache that is theirs: the same place for the same text, so that what was
/// compiled of it is found again.
Result<fs::path> script_in(const fs::path& cache) {
  ContentHash hash;
  for (const char* name : kScriptFiles) hash.add(bench::asset(name));
  const fs::path folder = cache / ("bench-" + hash.hex());
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return fail(ErrorKind::internal, "cannot make " + folder.string() + ": " + failed.message());
  for (const char* name : kScriptFiles) {
    const fs::path path = folder / name;
    if (const auto there = read_file(path); there && *there == bench::asset(name)) continue;
    auto file = observe::AtomicFile::create(path);
    if (!file) return tl::unexpected(file.error());
    PACELINE_TRY(file->write(bench::asset(name)));
    PACELINE_TRY(file->commit());
  }
  return folder / kScriptFiles[0];
}

Result<int> run_bench(const BenchFlags& flags) {
  const double seconds = flags.seconds.value_or(2);
  if (!(seconds > 0) || seconds > 3600)
    return fail(ErrorKind::invalid, "--seconds " + json_text(seconds) + ": give a time up to 3600 for each benchmark");
  const auto names = chosen(flags.names);
  if (!names) return tl::unexpected(names.error());
  if (flags.list) {
    list_all(flags.json);
    return kDone;
  }
  const auto cache = ScriptCache::open();
  if (!cache) return tl::unexpected(cache.error());
  const auto script = script_in(cache->folder().parent_path());
  if (!script) return tl::unexpected(script.error());
  const auto program = executable_of({.path = *script});
  if (!program) return tl::unexpected(program.error());
  const auto cluster = start_embedded({});  // Its own, whatever is up: nobody else's work is measured.
  if (!cluster) return tl::unexpected(cluster.error());
  Spawn driver;
  driver.command = {program->string(), flags.json ? "json" : "table", std::to_string(seconds),
                    std::to_string(flags.rounds)};
  driver.command.insert(driver.command.end(), names->begin(), names->end());
  driver.variables = {{"PACELINE_CLUSTER", cluster->directory().string()}};
  const auto ended = run_child(driver);
  if (!ended) return tl::unexpected(ended.error());
  return exit_code(*ended, *program);
}

constexpr const char* kBenchFooter =
    "Ray's microbenchmarks under the names and with the definitions that they have there, on a cluster of its own.\n"
    "A round does lots of work as long as its share of the seconds lasts, at least one.\n"
    "\n"
    "Examples:\n"
    "  paceline bench\n"
    "  paceline bench --seconds 10 1_1_actor_calls_sync 1_1_actor_calls_async --json\n";

}  // namespace

Action add_bench(Flags app) {
  auto flags = std::make_shared<BenchFlags>();
  Flags command = app.command("bench", "Measure tasks and calls of actors on this machine, by Ray's microbenchmarks");
  command.add("names", &flags->names, "those of --list; all, if none is named").value_name("NAME");
  command.add("--list", &flags->list, "name the benchmarks and say what each does, and measure nothing");
  command.add("--seconds", &flags->seconds, "for each benchmark; 2").value_name("S");
  command.add("--rounds", &flags->rounds, "in which they are spent; the median counts")
      .shows_default()
      .between(1, 1000);
  command.add("--json", &flags->json, "print one JSON line a benchmark");
  command.footer(kBenchFooter);
  return [flags] {
    const auto code = run_bench(*flags);
    return code ? *code : report(code.error());
  };
}

}  // namespace paceline::cli
