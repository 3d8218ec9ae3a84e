#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/compile.h"
#include "cli/flags/flags.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace paceline::cli {

/// The flags of `paceline run` as given; what is not given is left to the script.
struct RunFlags {
  std::string script;
  std::vector<std::string> more;         ///< Further sources, then arguments for the script.
  std::vector<std::string> script_args;  ///< What follows "--".
  std::vector<std::string> includes;     ///< Folders; -I.
  std::vector<std::string> library_folders;
  std::vector<std::string> libraries;
  std::optional<std::int64_t> workers;
  std::string strategy;
  std::string compare;  ///< Strategies separated by commas.
  std::optional<std::int64_t> accumulate;
  std::optional<double> epochs;
  std::optional<std::int64_t> batch;
  std::optional<double> evaluate_every_epochs;
  std::string optimizer_state;  ///< "keep", "reset", "average".
  std::string buffers;          ///< "average", "keep".
  std::string target;           ///< "0.88", "88%" or "none".
  std::optional<std::int64_t> early_stopping;
  std::optional<std::int64_t> keep_checkpoints;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> slow;  ///< "3:4x" each, or several with commas.
  std::string straggle;           ///< "1:40ms".
  std::string resume;
  bool json = false;
  bool no_output = false;
  std::optional<std::int64_t> nodes;
  std::string run_directory;
  std::string time_limit;  ///< "90s", "5m", "1h"; these four.
  std::string patience;
  std::string lost;  ///< "ok" or "fail".
  std::optional<std::int64_t> minimum;
  std::string start_limit;
  std::string checkpoint_every;
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
