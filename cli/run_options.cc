#include "cli/run_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "algorithms/job/options.h"
#include "algorithms/parse.h"
#include "algorithms/strategy.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/json.h"
#include "runtime/observe/format.h"

namespace paceline::cli {

namespace {

using nlohmann::json;

constexpr std::int64_t kNodesMax = 64;

tl::unexpected<Error> bad_flag(const std::string& flag, const std::string& value, const std::string& takes) {
  return fail(ErrorKind::invalid, flag + " " + value + ": " + takes);
}

/// As the job's options have it (algorithms/job/options.h).
Result<void> check_flag(const std::string& flag, std::string_view option, const json& value) {
  const std::string words = job::unfit(option, value);
  return words.empty() ? Result<void>() : bad_flag(flag, job::shown(value), words);
}

template <class Value>
Result<void> check_flag(const std::string& flag, std::string_view option, const std::optional<Value>& value) {
  return value ? check_flag(flag, option, json(*value)) : Result<void>();
}

/// The whole of `text` as a number, or nothing.
std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// null: none. Whether a number can be one the script's metric says (algorithms/job/options.h).
Result<json> parse_target(const std::string& text) {
  if (text == "none") return nullptr;
  std::string_view digits = text;
  const bool percent = digits.ends_with('%');
  if (percent) digits.remove_suffix(1);
  const auto value = number(digits);
  if (!value || (percent && (*value <= 0 || *value > 100)))
    return bad_flag("--target", text, "give a value of the metric such as 0.88 or 88%, or none");
  return percent ? *value / 100 : *value;
}

/// "3:rest" as worker (or count) and what follows; nullopt: no number of at most six digits stands in front.
std::optional<std::pair<std::int64_t, std::string_view>> numbered(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == 0 || colon > 6 || text.find_first_not_of("0123456789") != colon) return std::nullopt;
  return std::pair(*algorithms::read_integer(text.substr(0, colon)), text.substr(colon + 1));
}

/// "4" or "1.5": digits, and a point between two of them.
std::optional<double> decimal(std::string_view text) {
  if (text.find_first_not_of("0123456789.") != text.npos || text.starts_with('.') || text.ends_with('.'))
    return std::nullopt;
  return number(text);
}

Result<std::string> join_slow(const RunFlags& flags) {
  std::string all;
  for (const std::string& given : flags.slow) all += (all.empty() ? "" : ",") + given;
  for (std::size_t begin = 0; begin < all.size() || (begin == all.size() && !all.empty() && all.back() == ',');) {
    const std::size_t end = std::min(all.find(',', begin), all.size());
    const std::string part = all.substr(begin, end - begin);
    const auto worker = numbered(part);
    std::string_view factor = worker ? worker->second : "";
    if (factor.ends_with('x')) factor.remove_suffix(1);
    if (decimal(factor).value_or(0) < 1) {
      return bad_flag("--slow", part, "give worker:factor such as 3:4x, with a factor of at least 1");
    }
    if (flags.workers && worker->first >= *flags.workers) {
      return bad_flag("--slow", part, "workers are numbered 0 to " + std::to_string(*flags.workers - 1));
    }
    begin = end + 1;
  }
  return all;
}

Result<void> check_straggle(const RunFlags& flags) {
  if (flags.straggle.empty()) return {};
  const auto count = numbered(flags.straggle);
  const std::string_view delay = count ? count->second : "";
  const std::size_t digits = std::min(delay.find_first_not_of("0123456789."), delay.size());
  const std::string_view unit = delay.substr(digits);
  if (!decimal(delay.substr(0, digits)) || (unit != "us" && unit != "ms" && unit != "s")) {
    return bad_flag("--straggle", flags.straggle, "give count:delay such as 1:40ms (units us, ms, s)");
  }
  if (flags.workers && count->first > *flags.workers) {
    return bad_flag("--straggle", flags.straggle, "there are only " + std::to_string(*flags.workers) + " workers");
  }
  return {};
}

bool brings_batches(const RunFlags& flags, const std::string& strategy) {
  const auto parsed = algorithms::parse_strategy(strategy, static_cast<std::int32_t>(flags.workers.value_or(4)));
  return parsed && parsed->brings_batches();
}
bool names_batches(const std::string& strategy) { return strategy.find("batches") != std::string::npos; }

/// "nonblocking" -> "nonblocking(batches=4)".
std::string with_batches(const std::string& strategy, std::int64_t batches) {
  const std::string parameter = "batches=" + std::to_string(batches);
  if (!strategy.ends_with(')')) return strategy + "(" + parameter + ")";
  const bool empty = strategy.ends_with("()");
  return strategy.substr(0, strategy.size() - 1) + (empty ? "" : ",") + parameter + ")";
}

/// Mini-batches an update that all strategies of a comparison get; 0: nothing says so.
Result<std::int64_t> common_batches(const RunFlags& flags, const std::vector<std::string>& strategies) {
  std::int64_t common = flags.accumulate.value_or(0);
  std::string from = "--accumulate " + std::to_string(common) + " asks for another number";
  for (const std::string& text : strategies) {
    if (!brings_batches(flags, text) || (flags.accumulate && !names_batches(text))) continue;
    const auto strategy = algorithms::parse_strategy(text, static_cast<std::int32_t>(flags.workers.value_or(4)));
    if (!strategy) return tl::unexpected(strategy.error());
    if (common != 0 && common != strategy->batches) {
      return fail(ErrorKind::invalid, "--compare: " + text + " has " + std::to_string(strategy->batches) +
                                          " mini-batches an update but " + from +
                                          ": runs are compared at equal samples an update, so give one number");
    }
    common = strategy->batches;
    from = text + " has " + std::to_string(common);
  }
  return common;
}

Result<json> common_overrides(const RunFlags& flags) {
  json overrides = json::object();
  if (flags.workers) overrides["workers"] = *flags.workers;
  if (flags.epochs) overrides["epochs"] = *flags.epochs;
  if (flags.batch) overrides["batch"] = *flags.batch;
  if (flags.evaluate_every_epochs) overrides["evaluate_every_epochs"] = *flags.evaluate_every_epochs;
  if (flags.seed) overrides["seed"] = *flags.seed;
  if (!flags.optimizer_state.empty()) overrides["optimizer_state"] = flags.optimizer_state;
  if (!flags.buffers.empty()) overrides["buffers"] = flags.buffers;
  if (!flags.target.empty()) {
    const auto target = parse_target(flags.target);
    if (!target) return tl::unexpected(target.error());
    overrides["target"] = *target;
  }
  if (flags.early_stopping) overrides["early_stopping"] = *flags.early_stopping;
  if (flags.keep_checkpoints) overrides["keep_checkpoints"] = *flags.keep_checkpoints;
  const auto slow = join_slow(flags);
  if (!slow) return tl::unexpected(slow.error());
  if (!slow->empty()) overrides["slow"] = *slow;
  PACELINE_TRY(check_straggle(flags));
  if (!flags.straggle.empty()) overrides["straggle"] = flags.straggle;
  if (!flags.resume.empty()) overrides["resume"] = flags.resume;
  if (flags.json) overrides["json"] = true;
  if (!flags.lost.empty()) overrides["lost"] = flags.lost;
  if (flags.minimum) overrides["minimum"] = *flags.minimum;
  for (const auto& [flag, name, given] :
       {std::tuple{"--time-limit", "time_limit_s", &flags.time_limit},
        std::tuple{"--patience", "patience_s", &flags.patience},
        std::tuple{"--start-limit", "start_limit_s", &flags.start_limit},
        std::tuple{"--checkpoint-every", "checkpoint_every_s", &flags.checkpoint_every}}) {
    if (given->empty()) continue;
    const auto limit = parse_seconds(*given);
    if (!limit) return bad_flag(flag, *given, limit.error().text);
    PACELINE_TRY(check_flag(flag, name, json(*limit)));
    overrides[name] = *limit;
  }
  return overrides;
}

/// Those of the job, without what says which program it is.
void add_job_flags(Flags app, RunFlags& flags);

}  // namespace

void add_run_flags(Flags app, RunFlags& flags) {
  app.add("script", &flags.script, "an actor script (x.cpp) or an executable made from one").required();
  app.add("more", &flags.more,
          "further sources (.cpp, .cc), then arguments for the script; those that begin with - go after --");
  app.rest(&flags.script_args);
  app.add("-I", &flags.includes, "a folder of headers, for compiling the script").repeated();
  app.add("-L", &flags.library_folders, "a folder of libraries").repeated();
  app.add("-l", &flags.libraries, "a library that the script is linked with: -l fftw3f; or a file").repeated();
  add_job_flags(app, flags);
}

namespace {

void add_job_flags(Flags app, RunFlags& flags) {
  app.add("--workers,-w", &flags.workers, "worker processes");
  app.add("--strategy,-s", &flags.strategy, "how workers average, such as 'wagma(group=2,sync=10)'; below");
  app.add("--compare", &flags.compare, "strategies separated by commas: one run each, then a table");
  app.add("--accumulate", &flags.accumulate, "mini-batches an update");
  app.add("--epochs", &flags.epochs, "passes over the data");
  app.add("--batch", &flags.batch, "samples of a mini-batch");
  app.add("--evaluate-every-epochs", &flags.evaluate_every_epochs,
          "how often the averaged model is evaluated and saved; 0: at the end only");
  app.add("--target", &flags.target, "stop when an evaluation reaches this: 0.88 or 88%; none: run to the end");
  app.add("--early-stopping", &flags.early_stopping,
          "stop when so many evaluations in a row were no better than the best");
  app.add("--checkpoint-every", &flags.checkpoint_every,
          "save besides when 90s, 5m, 1h have passed since the last checkpoint; without it with evaluations only");
  app.add("--keep-checkpoints", &flags.keep_checkpoints,
          "so many of the last ones; that of the best evaluation is kept besides");
  app.add("--optimizer-state", &flags.optimizer_state,
          "what an averaging of models does with the optimisers' state: keep, reset or average; default: the "
          "strategy's own");
  app.add("--buffers", &flags.buffers,
          "BatchNorm's statistics and other float buffers: average (with the model; default) or keep");
  app.add("--seed", &flags.seed, "of data order, initial model and made-up delays");
  app.add("--slow", &flags.slow, "worker:factor, such as 3:4x: worker 3 takes 4 times as long (it sleeps)").repeated();
  app.add("--straggle", &flags.straggle,
          "count:delay, such as 1:40ms: each step that many random workers sleep so long");
  app.add("--resume", &flags.resume, "go on from this run directory or checkpoint");
  app.add("--json", &flags.json, "events as JSON lines on stdout");
  app.add("--nodes", &flags.nodes, "node agents of the cluster that is started for the run");
  app.add("--no-output", &flags.no_output,
          "do not show what workers print: it stands in the run directory's logs only");
  app.add("--run-dir", &flags.run_directory, "where to write; default runs/DATE-NAME");
  app.add("--time-limit", &flags.time_limit, "stop after 90s, 5m, 1h");
  app.add("--patience", &flags.patience,
          "how long the others wait for a worker that is slow but alive, 30s, 5m; without it as long as it takes");
  app.add("--lost", &flags.lost,
          "whether a run that lost workers, and went on without them, ends well (ok, the default) or not (fail)");
  app.add("--minimum", &flags.minimum, "the run stops, and fails, when fewer workers than these are left");
  app.add("--start-limit", &flags.start_limit, "how long a worker may take until it shares its model; 10m without it");
}

/// Long flags that are not ours and look as if they were meant to be, with the one that was meant.
json misspelt_among(const std::vector<std::string>& arguments, const CommandLine& line) {
  const auto words = line.words();
  std::vector<std::string_view> known;
  for (const auto& [flag, help] : words.front().flags)
    if (flag.starts_with("--")) known.push_back(std::string_view(flag).substr(2));
  json misspelt = json::object();
  for (const auto& argument : arguments) {
    if (argument == "--") break;
    if (!argument.starts_with("--")) continue;
    const std::string name = argument.substr(2, argument.find('=') - 2);
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (const auto meant = did_you_mean(name, known)) misspelt["--" + name] = "--" + std::string(*meant);
  }
  return misspelt;
}

}  // namespace

Result<json> options_among(const std::vector<std::string>& arguments) {
  RunFlags flags;
  CommandLine line("paceline", "");
  add_job_flags(line.flags(), flags);
  const auto refused = [](const std::string& text) {
    return fail(ErrorKind::invalid, text + " (a flag of `paceline run`; what follows -- is the program's own)");
  };
  if (const auto parsed = line.parse_among_others(arguments); !parsed) return refused(parsed.error().text);
  for (const auto& [flag, given] : {std::pair{"--compare", !flags.compare.empty()},
                                    {"--nodes", flags.nodes.has_value()},
                                    {"--no-output", flags.no_output}})
    if (given) return refused(std::string(flag) + " needs `paceline run PROGRAM`");
  const auto runs = plan_runs(flags);
  if (!runs) return refused(runs.error().text);
  json options = runs->front().overrides;
  if (!flags.run_directory.empty()) options["run_directory"] = std::filesystem::absolute(flags.run_directory).string();
  if (auto misspelt = misspelt_among(arguments, line); !misspelt.empty()) options["misspelt"] = std::move(misspelt);
  return options;
}

Script script_of(const RunFlags& flags) {
  Script script{flags.script};
  const auto absolute = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal().string();
  };
  const auto sources_end = std::find_if_not(flags.more.begin(), flags.more.end(), is_source);
  std::transform(flags.more.begin(), sources_end, std::back_inserter(script.parts.sources), absolute);
  std::transform(flags.includes.begin(), flags.includes.end(), std::back_inserter(script.parts.includes), absolute);
  std::transform(flags.library_folders.begin(), flags.library_folders.end(),
                 std::back_inserter(script.parts.library_folders), absolute);
  for (const auto& library : flags.libraries)
    script.parts.libraries.push_back(is_name_of_library(library) ? library : absolute(library));
  return script;
}

std::vector<std::string> arguments_of(const RunFlags& flags) {
  std::vector<std::string> arguments(std::find_if_not(flags.more.begin(), flags.more.end(), is_source),
                                     flags.more.end());
  arguments.insert(arguments.end(), flags.script_args.begin(), flags.script_args.end());
  return arguments;
}

std::string changed_by_comparison(const RunFlags& flags, const std::vector<PlannedRun>& runs) {
  for (const auto& run : runs)
    if (!flags.accumulate && runs.size() > 1 && run.overrides.contains("accumulate"))
      return "an update takes " + json_text(run.overrides["accumulate"]) +
             " mini-batches of each worker in all of them, as under nonblocking; --accumulate gives another number";
  return "";
}

Result<std::vector<PlannedRun>> plan_runs(const RunFlags& flags) {
  if (flags.nodes && (*flags.nodes < 1 || *flags.nodes > kNodesMax))
    return bad_flag("--nodes", std::to_string(*flags.nodes), "give a number from 1 to " + std::to_string(kNodesMax));
  PACELINE_TRY(check_flag("--workers", "workers", flags.workers));
  PACELINE_TRY(check_flag("--accumulate", "accumulate", flags.accumulate));
  PACELINE_TRY(check_flag("--batch", "batch", flags.batch));
  PACELINE_TRY(check_flag("--minimum", "minimum", flags.minimum));
  if (flags.workers && flags.minimum > flags.workers)
    return bad_flag("--minimum", std::to_string(*flags.minimum),
                    "there are only " + std::to_string(*flags.workers) + " workers");
  PACELINE_TRY(check_flag("--early-stopping", "early_stopping", flags.early_stopping));
  PACELINE_TRY(check_flag("--keep-checkpoints", "keep_checkpoints", flags.keep_checkpoints));
  PACELINE_TRY(check_flag("--evaluate-every-epochs", "evaluate_every_epochs", flags.evaluate_every_epochs));
  PACELINE_TRY(check_flag("--epochs", "epochs", flags.epochs));
  for (const auto& [flag, option, given] :
       {std::tuple{"--buffers", "buffers", &flags.buffers}, std::tuple{"--lost", "lost", &flags.lost},
        std::tuple{"--resume", "resume", &flags.resume}})
    if (!given->empty()) PACELINE_TRY(check_flag(flag, option, json(*given)));
  // In the options 0 is: never.
  if (flags.early_stopping == 0) return bad_flag("--early-stopping", "0", "give a number from 1, or leave it out");
  if (!flags.compare.empty() && !flags.strategy.empty()) {
    return fail(ErrorKind::invalid, "--strategy and --compare exclude each other: name all strategies in --compare");
  }
  if (!flags.compare.empty() && !flags.resume.empty()) {
    return fail(ErrorKind::invalid,
                "--resume and --compare exclude each other: a comparison starts every strategy at the beginning");
  }
  auto common = common_overrides(flags);
  if (!common) return tl::unexpected(common.error());

  std::vector<std::string> strategies = {flags.strategy};
  if (!flags.compare.empty()) {
    auto split = split_strategies(flags.compare);
    if (!split) return tl::unexpected(split.error());
    strategies = std::move(*split);
  }
  for (const std::string& text : strategies) {
    if (text.empty() || !flags.workers) continue;  // Without --workers the script says how many: it checks.
    const auto parsed = algorithms::parse_strategy(text, static_cast<std::int32_t>(*flags.workers));
    if (!parsed) return tl::unexpected(parsed.error());
    PACELINE_TRY(algorithms::check_optimizer_state(*parsed, flags.optimizer_state));
  }
  std::int64_t batches = flags.accumulate.value_or(0);
  if (!flags.compare.empty()) {
    const auto shared = common_batches(flags, strategies);
    if (!shared) return tl::unexpected(shared.error());
    batches = *shared;
  }

  std::vector<PlannedRun> runs;
  for (const std::string& text : strategies) {
    PlannedRun run{text, *common};
    const bool brings_its_own = brings_batches(flags, text);
    if (!text.empty()) {
      run.overrides["label"] = text;  // What results are called: as the user wrote it.
      run.overrides["strategy"] =
          brings_its_own && batches != 0 && !names_batches(text) ? with_batches(text, batches) : text;
    }
    if (batches != 0 && !brings_its_own) run.overrides["accumulate"] = batches;
    if (!flags.compare.empty()) run.overrides["compare"] = strategies;
    runs.push_back(std::move(run));
  }
  return runs;
}

std::string strategies_in_words() {
  std::string text = "Strategies (with their defaults):\n";
  for (const auto& line : algorithms::strategy_help()) {
    text += "  " + line.spelling + "\n      " + line.sentence + "\n";
  }
  return text;
}

Result<std::vector<std::string>> split_strategies(const std::string& list) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool apart = false;  // A space came after what there is of this strategy.
  for (const char c : list) {
    if (apart && c != ' ' && c != ',')
      return bad_flag("--compare", list, "a comma separates strategies: 'allreduce,nonblocking'");
    apart = depth == 0 && c == ' ' && !parts.back().empty();
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth < 0) break;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else if (c != ' ' || depth > 0) {
      parts.back() += c;
    }
  }
  if (depth != 0) return bad_flag("--compare", list, "parentheses do not match");
  if (std::find(parts.begin(), parts.end(), "") != parts.end())
    return bad_flag("--compare", list, "a strategy between commas is missing");
  return parts;
}

Result<double> parse_seconds(const std::string& text) {
  static const std::map<char, double> kUnits = {{'s', 1}, {'m', 60}, {'h', 3600}};
  std::string_view digits = text;
  double unit = 1;
  if (!digits.empty() && kUnits.contains(digits.back())) {
    unit = kUnits.at(digits.back());
    digits.remove_suffix(1);
  }
  const auto value = number(digits);
  if (!value || *value <= 0) return fail(ErrorKind::invalid, "give a time such as 90s, 5m or 1h");
  return *value * unit;
}

}  // namespace paceline::cli
