#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "scheduler/record/record_file.h"

namespace paceline::recorded {

/// A run that came to its end by itself, with all that is needed to run it again.
struct RecordedRun {
  std::filesystem::path directory;  ///< Absolute.
  nlohmann::json options;           ///< The job's.
  nlohmann::json environment;
  nlohmann::json program;  ///< path, build, arguments; script: path, hash.
  nlohmann::json result;
  std::vector<std::int32_t> node_of;                  ///< Of each worker.
  std::map<std::int32_t, scheduler::Record> records;  ///< By node.
  /// Nodes that were lost on the way, of which the records have no end.
  std::set<std::int32_t> lost_nodes;
};

/// `not_found`: no such run, or none that recorded its decisions; `invalid`: it did not come to its end, or its record
/// is half written or damaged. All of it is checked.
Result<RecordedRun> read_recorded(const std::filesystem::path& directory);

/// What is no longer as it was: the script and the files that the training read, by content. Empty: nothing. One line
/// each.
std::vector<std::string> changes_since(const RecordedRun& run);

/// Workers whose model at the end is not that of the run, in words. Empty: bit-identical.
std::vector<std::string> differing_models(const nlohmann::json& result, const nlohmann::json& replayed);

}  // namespace paceline::recorded
