#include "cli/run_options.h"

#include <algorithm>
#include <map>

#include "algorithms/cluster/processes.h"
#include "algorithms/job/options.h"
#include "algorithms/parse.h"
#include "algorithms/strategy.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/json.h"
#include "runtime/base/read_number.h"
#include "runtime/observe/format.h"

namespace paceline::cli {

namespace {

using nlohmann::json;

tl::unexpected<Error> bad_flag(const std::string& flag, const std::string& value, const std::string& takes) {
  return fail(ErrorKind::invalid, flag + " " + value + ": " + takes);
}

/// null: none. Whether a number can be one the script's metric says (algorithms/job/options.h).
Result<json> parse_target(const std::string& text) {
  if (text == "none") return nullptr;
  std::string_view digits = text;
  const bool percent = digits.ends_with('%');
  if (percent) digits.remove_suffix(1);
  const auto value = algorithms::read_real(digits);
  if (!value || (percent && (*value <= 0 || *value > 100)))
    return bad_flag("--target", text, "give a value of the metric such as 0.88 or 88%, or none");
  return percent ? *value / 100 : *value;
}

/// What an option's flag was given, as the job's options have it; null of a target: none.
Result<json> value_of(const job::Option& option, const std::string& text) {
  const std::string flag = job::flag_of(option.name);
  const auto checked = [&](json value) -> Result<json> {
    const std::string words = job::unfit(option.name, value);
    return words.empty() ? Result<json>(std::move(value)) : bad_flag(flag, job::shown(text), words);
  };
  switch (option.kind) {
    case job::Kind::target: return parse_target(text);
    case job::Kind::time: {
      const auto time = parse_seconds(text);
      return time ? checked(*time) : bad_flag(flag, job::shown(text), time.error().text);
    }
    case job::Kind::yes_no: return checked(text == "yes" ? json(true) : text == "no" ? json(false) : json(text));
    case job::Kind::seed: {
      const auto whole = read_number<std::uint64_t>(text);
      return checked(whole ? json(*whole) : json(text));
    }
    case job::Kind::integer: {
      const auto whole = read_number<std::int64_t>(text);
      return checked(whole ? json(*whole) : json(text));
    }
    case job::Kind::number:
    case job::Kind::above_zero: {
      const auto value = algorithms::read_real(text);
      return checked(value ? json(*value) : json(text));
    }
    default: return checked(text);
  }
}

/// "2..8": at least, at most. nullopt: it is none.
std::optional<std::pair<std::int64_t, std::int64_t>> range_in(const std::string& text) {
  const auto dots = text.find("..");
  if (dots == std::string::npos) return {};
  const auto least = read_number<std::int64_t>(text.substr(0, dots));
  const auto most = read_number<std::int64_t>(text.substr(dots + 2));
  if (!least || !most || *least > *most) return {};
  return std::pair(*least, *most);
}

/// So many places for workers, of which as many are taken at the start as there are cpus.
Result<void> give_places(const std::string& text, json& options) {
  const auto range = range_in(text);
  if (!range) return bad_flag("--workers", job::shown(text), "give a number, or at least and at most so many: 2..8");
  options["begin_with"] = -1;
  for (const auto& [option, number] : {std::pair{"minimum", range->first}, {"workers", range->second}}) {
    const std::string words = job::unfit(option, number);
    if (!words.empty()) return bad_flag("--workers", job::shown(text), words);
    options[option] = number;
  }
  return {};
}

/// Of the job, as its flags were given. A text that is empty is none.
Result<json> given_options(const RunFlags& flags) {
  json options = json::object();
  for (const job::Option& option : job::all_options()) {
    const auto given = flags.given.find(option.name);
    if (given == flags.given.end()) continue;
    std::string all = given->second.once.value_or("");
    for (const std::string& one : given->second.each) {
      if (const auto fits = value_of(option, one); !fits) return tl::unexpected(fits.error());
      all += (all.empty() ? "" : ",") + one;
    }
    if (option.name == "workers" && all.find("..") != std::string::npos) {
      PACELINE_TRY(give_places(all, options));
      continue;
    }
    const bool is_text = option.kind == job::Kind::text || option.kind == job::Kind::choice;
    if (all.empty() && (is_text || !given->second.once)) continue;
    auto value = value_of(option, all);
    if (!value) return tl::unexpected(value.error());
    options[option.name] = *std::move(value);
  }
  // In the options 0 is: never.
  if (options.value("early_stopping", 1) == 0)
    return bad_flag("--early-stopping", "0", "give a number from 1, or leave it out");
  PACELINE_TRY(job::check_workers_named(options));
  if (flags.json) options["json"] = true;
  return options;
}

std::int32_t workers_of(const json& options) { return options.value("workers", 4); }

bool brings_batches(const json& options, const std::string& strategy) {
  const auto parsed = algorithms::parse_strategy(strategy, workers_of(options));
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
Result<std::int64_t> common_batches(const json& options, const std::vector<std::string>& strategies) {
  std::int64_t common = options.value("accumulate", std::int64_t{0});
  std::string from = "--accumulate " + std::to_string(common) + " asks for another number";
  for (const std::string& text : strategies) {
    if (!brings_batches(options, text) || (options.contains("accumulate") && !names_batches(text))) continue;
    const auto strategy = algorithms::parse_strategy(text, workers_of(options));
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

/// What --help calls it.
std::string value_name(job::Kind kind) {
  switch (kind) {
    case job::Kind::integer: return "INT";
    case job::Kind::seed: return "UINT";
    case job::Kind::number:
    case job::Kind::above_zero: return "FLOAT";
    case job::Kind::time: return "TIME";
    default: return "TEXT";
  }
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
  for (const job::Option& option : job::all_options()) {
    if (option.help.empty()) continue;
    std::string names = job::flag_of(option.name);
    if (!option.short_flag.empty()) names += "," + std::string(option.short_flag);
    GivenOption& given = flags.given[option.name];
    const bool repeats = option.kind == job::Kind::slow;
    auto flag = app.add(names, repeats ? FlagTarget(&given.each) : FlagTarget(&given.once), std::string(option.help));
    if (repeats) flag.repeated();
    flag.value_name(value_name(option.kind));
  }
  app.add("--compare", &flags.compare, "strategies separated by commas: one run each, then a table");
  app.add("--json", &flags.json, "events as JSON lines on stdout");
  app.add("--nodes", &flags.nodes, "node agents of the cluster that is started for the run");
  app.add("--no-output", &flags.no_output,
          "do not show what workers print: it stands in the run directory's logs only");
  app.add("--run-dir", &flags.run_directory, "where to write; default runs/DATE-NAME");
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
    if (!flags.gives("accumulate") && runs.size() > 1 && run.overrides.contains("accumulate"))
      return "an update takes " + json_text(run.overrides["accumulate"]) +
             " mini-batches of each worker in all of them, as under nonblocking; --accumulate gives another number";
  return "";
}

Result<std::vector<PlannedRun>> plan_runs(const RunFlags& flags) {
  if (flags.nodes && (*flags.nodes < 1 || *flags.nodes > cluster::kNodesMax))
    return bad_flag("--nodes", std::to_string(*flags.nodes),
                    "give a number from 1 to " + std::to_string(cluster::kNodesMax));
  const auto common = given_options(flags);
  if (!common) return tl::unexpected(common.error());
  const auto asked = [&](const char* option) { return common->value(option, std::string()); };
  if (!flags.compare.empty() && !asked("strategy").empty()) {
    return fail(ErrorKind::invalid, "--strategy and --compare exclude each other: name all strategies in --compare");
  }
  if (!flags.compare.empty() && !asked("resume").empty()) {
    return fail(ErrorKind::invalid,
                "--resume and --compare exclude each other: a comparison starts every strategy at the beginning");
  }

  std::vector<std::string> strategies = {asked("strategy")};
  if (!flags.compare.empty()) {
    auto split = split_strategies(flags.compare);
    if (!split) return tl::unexpected(split.error());
    strategies = std::move(*split);
  }
  for (const std::string& text : strategies) {
    if (text.empty() || !common->contains("workers")) continue;  // Without it the script says how many: it checks.
    const auto parsed = algorithms::parse_strategy(text, workers_of(*common));
    if (!parsed) return tl::unexpected(parsed.error());
    PACELINE_TRY(algorithms::check_optimizer_state(*parsed, asked("optimizer_state")));
    PACELINE_TRY(algorithms::check_lr_scaling(*parsed, workers_of(*common), common->value("lr_scaling", "none")));
  }
  std::int64_t batches = common->value("accumulate", std::int64_t{0});
  if (!flags.compare.empty()) {
    const auto shared = common_batches(*common, strategies);
    if (!shared) return tl::unexpected(shared.error());
    batches = *shared;
  }

  std::vector<PlannedRun> runs;
  for (const std::string& text : strategies) {
    PlannedRun run{text, *common};
    const bool brings_its_own = brings_batches(*common, text);
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
  const auto value = algorithms::read_real(digits);
  if (!value || *value <= 0) return fail(ErrorKind::invalid, "give a time such as 90s, 5m or 1h");
  return *value * unit;
}

}  // namespace paceline::cli
