#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "cli/recorded/run_history.h"
#include "cli/recorded/run_trace.h"
#include "runtime/base/result.h"

namespace paceline::report {

/// Runs on one page.
inline constexpr std::size_t kRunsMax = 64;

/// One run, all of it.
struct LoadedRun {
  recorded::RunHistory history;
  std::optional<recorded::RunTrace> trace;
};

/// Reads the history and the trace of the run in `directory` or, where that is the directory of a comparison, of each
/// run in it. Errors as of recorded::read_run().
Result<std::vector<LoadedRun>> load_runs(const std::filesystem::path& directory);

/// What the page shows (and `paceline report --json` prints): {"runs": [...]}, a run as
///   name        unlike every other run's
///   directory, strategy, workers, options, environment, outcome, failed, notes
///   result      the figures of result.json
///   loss, evaluations, period   {clock_s: [...], samples: [...], value: [...]}; long curves are thinned, which a note
///   says
///   staleness   contributions by how many versions late they were; [] where it is not recorded
///   views       who came and went: {clock_s, update, event, text, took_s}, the last one null where nothing says it; of
///   many the first and the last, which a note says
///   timeline    as of timeline(); null without a trace
/// The more runs, the coarser each: the page stays small.
nlohmann::json report_data(const std::vector<LoadedRun>& runs);

}  // namespace paceline::report
