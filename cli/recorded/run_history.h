#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace paceline::recorded {

/// A figure as it stood at a moment of a run.
struct Point {
  double clock_s = 0;  ///< Training time: evaluations do not count.
  double samples = 0;  ///< That all workers had processed.
  double value = 0;
};

/// Somebody came or went, or was asked to, or the job went on in another way (algorithms/job/view_changes.h).
struct ViewChange {
  double clock_s = 0;       ///< Training time, and
  std::int64_t update = 0;  ///< the last update, of which the driver had heard then.
  std::string event;
  std::string text;
  std::optional<double> took_s;
};

/// What a run directory tells of its run, but for the trace.
struct RunHistory {
  std::filesystem::path directory;
  nlohmann::json options = nlohmann::json::object();
  nlohmann::json environment = nlohmann::json::object();
  nlohmann::json program = nlohmann::json::object();  ///< What was run, and when it began.
  nlohmann::json result;  ///< As in result.json; of a run without one, what its metrics come to.
  bool ended = false;     ///< It left a result.
  bool failed = false;
  std::string outcome;                           ///< In words.
  std::int64_t first_update = 0;                 ///< Above 0 where it went on from a checkpoint.
  std::map<std::int32_t, std::int64_t> samples;  ///< That each worker processed, by rank.
  std::vector<Point> loss, evaluations, period;
  std::map<std::string, std::vector<Point>> logged;  ///< By name, on average over the workers (`Worker::log`).
  std::vector<ViewChange> views;
  std::vector<std::int64_t> staleness;  ///< Contributions by how many versions late they were; empty: not recorded.
  std::vector<std::string> notes;       ///< What the reader should know of how complete this is.

  std::string strategy() const;
  std::int64_t workers() const;
};

/// Whether a directory looks like one of a training run, by the names in it.
bool is_run(const std::filesystem::path& directory);
/// The directories of the runs of a comparison ("1-allreduce", "2-wagma"), in their order; else `directory` alone.
std::vector<std::filesystem::path> runs_in(const std::filesystem::path& directory);
enum class Replays { count, do_not_count };
/// The run in `base`, or in a comparison there, that was begun last, whatever its name; or "".
std::filesystem::path newest_run(const std::filesystem::path& base, Replays replays);

/// Reads configuration.json, metrics.jsonl and result.json. The run may still be going on, or have been killed: a last
/// line that is half written is left out. `not_found`: no such directory; `invalid`: no run directory, or one without
/// any figure; `internal`: it cannot be read.
Result<RunHistory> read_run(const std::filesystem::path& directory);

}  // namespace paceline::recorded
