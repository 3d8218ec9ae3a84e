#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/compile.h"
#include "cli/flags/flags.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace paceline::cli {

/// What the flag of an option was given, as it was written.
struct GivenOption {
  std::optional<std::string> once;
  std::vector<std::string> each;  ///< Of one that may be repeated.
};

/// The flags of `paceline run` as given; what is not given is left to the script.
struct RunFlags {
  std::string script;
  std::vector<std::string> more;         ///< Further sources, then arguments for the script.
  std::vector<std::string> script_args;  ///< What follows "--".
  std::vector<std::string> includes;     ///< Folders; -I.
  std::vector<std::string> library_folders;
  std::vector<std::string> libraries;
  std::map<std::string_view, GivenOption> given;  ///< Options of the job, by their names there (job::all_options()).
  std::string compare;                            ///< Strategies separated by commas.
  bool json = false;
  bool no_output = false;
  std::optional<std::int64_t> nodes;
  std::string run_directory;

  bool gives(std::string_view option) const {
    const auto found = given.find(option);
    return found != given.end() && (found->second.once || !found->second.each.empty());
  }
  /// As if the flag had been given.
  void give(std::string_view option, std::string value) { given[option].once = std::move(value); }
};

void add_run_flags(Flags app, RunFlags& flags);

/// One start of the script: the strategy as the user named it, and the options that override the script's
/// (PACELINE_RUN).
struct PlannedRun {
  std::string label;  ///< Empty: the script's own strategy.
  nlohmann::json overrides;
};

/// The script, with the further sources and libraries of its executable.
Script script_of(const RunFlags& flags);
/// What the script is given.
std::vector<std::string> arguments_of(const RunFlags& flags);

/// One run a strategy of --compare, else one. With --compare all have the same nominal samples an update: what
/// nonblocking(batches=N) brings, the others get as --accumulate N. `invalid` names the flag, its value and what it
/// takes.
Result<std::vector<PlannedRun>> plan_runs(const RunFlags& flags);
/// What a comparison changed of the script's own options, in one line; empty: nothing.
std::string changed_by_comparison(const RunFlags& flags, const std::vector<PlannedRun>& runs);

/// What the flags of a training job among the arguments of a program override, when it was started by itself
/// (`./job --workers 4`); words that are no such flags are the program's own. `misspelt`: long
/// flags that are close to one of ours, and which that is. `invalid` as plan_runs().
Result<nlohmann::json> options_among(const std::vector<std::string>& arguments);

/// The strategies, for --help.
std::string strategies_in_words();

/// "a,b(c,d)" -> {"a", "b(c,d)"}; `invalid` for empty parts and unbalanced parentheses.
Result<std::vector<std::string>> split_strategies(const std::string& list);
/// "90s", "5m", "1.5h" or a number of seconds.
Result<double> parse_seconds(const std::string& text);

}  // namespace paceline::cli
