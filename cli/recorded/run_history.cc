#include "cli/recorded/run_history.h"

#include <algorithm>
#include <cstring>

#include "algorithms/job/metric.h"
#include "cli/recorded/json_fields.h"
#include "cli/recorded/metrics_reader.h"
#include "runtime/base/json.h"
#include "runtime/observe/format.h"
#include "runtime/observe/read_file.h"

namespace paceline::recorded {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The object that a file of the run holds; an empty one, with a note, if it is damaged, without if it is not there.
Result<json> read_object(const fs::path& path, std::vector<std::string>& notes) {
  const auto text = observe::read_file(path.string(), observe::kJsonBytesMax);
  if (!text && text.error().kind == ErrorKind::not_found) return json::object();
  if (!text) return tl::unexpected(text.error());
  json object = parse_json(*text);
  if (object.is_object()) return object;
  notes.push_back(path.filename().string() + " is no JSON object and was left out");
  return json::object();
}

bool is_replay(const fs::path& configuration) {
  std::vector<std::string> notes;
  const auto told = read_object(configuration, notes);
  return told && !text_of(object_in(*told, "options"), "replay").empty();
}

std::string target_text(const RunHistory& run, double seconds) {
  const auto target = job::target_of(run.options).value_or(0);
  return "reached the target of " + job::text(job::metric_of(run.options), target) +
         observe::format(" in %.1f s", seconds);
}

/// How it ended, in words.
std::string outcome_of(const RunHistory& run, const job::JobRecord& record) {
  const std::string at = "update " + std::to_string(record.update()) +
                         (record.updates() > 0 ? " of " + std::to_string(record.updates()) : std::string());
  if (run.failed) return "failed at " + at + ": " + text_of(run.result, "failure");
  if (!run.ended) return "no result: it still runs, or was killed, at " + at;
  const auto interrupted = run.result.find("interrupted");
  if (interrupted != run.result.end() && *interrupted == true) return "interrupted at " + at;
  if (const auto reached = number(run.result, "time_to_target_s")) return target_text(run, *reached);
  const std::string reason = record.update() < record.updates() ? record.stop_reason() : "";
  return reason.empty() ? "ran to its end, " + at : "stopped at " + at + ": " + reason;
}

/// "; lost workers 1, 3": the figures are of fewer from then on.
std::string lost_words(const json& result) {
  const auto lost = result.find("lost");
  if (lost == result.end() || !lost->is_array() || lost->empty()) return "";
  std::string ranks;
  for (const auto& rank : *lost) ranks += (ranks.empty() ? "" : ", ") + json_text(rank);
  return std::string("; lost worker") + (lost->size() > 1 ? "s " : " ") + ranks;
}

}  // namespace

std::string RunHistory::strategy() const {
  for (const char* name : {"label", "strategy"})
    if (std::string text = text_of(options, name); !text.empty()) return text;
  return text_of(result, "strategy");
}

std::int64_t RunHistory::workers() const {
  if (const auto given = number(options, "workers")) return static_cast<std::int64_t>(*given);
  const auto waits = result.find("wait_s_per_worker");
  return waits != result.end() ? static_cast<std::int64_t>(waits->size()) : 0;
}

bool is_run(const fs::path& directory) {
  std::error_code ignored;
  return fs::exists(directory / "metrics.jsonl", ignored) || fs::exists(directory / "configuration.json", ignored);
}

std::vector<fs::path> runs_in(const fs::path& directory) {
  if (is_run(directory)) return {directory};
  std::vector<fs::path> runs;
  std::error_code failed;
  for (fs::directory_iterator it(directory, failed), end; !failed && it != end; it.increment(failed))
    if (is_run(it->path())) runs.push_back(it->path());
  if (runs.empty()) return {directory};
  std::sort(runs.begin(), runs.end(), [](const fs::path& a, const fs::path& b) {
    return ::strverscmp(a.filename().c_str(), b.filename().c_str()) < 0;
  });
  return runs;
}

fs::path newest_run(const fs::path& base, Replays replays) {
  // Of two of one time the one whose name, which begins with the date, is later.
  std::pair<fs::file_time_type, fs::path> last{fs::file_time_type::min(), ""};
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(base, failed)) {
    for (const fs::path& run : runs_in(entry.path())) {
      const fs::path configuration = run / "configuration.json";  // Written at the start, and never again.
      const auto began = fs::last_write_time(configuration, failed);
      if (failed || std::pair(began, run) <= last) continue;
      if (replays == Replays::count || !is_replay(configuration)) last = {began, run};
    }
  }
  return last.second;
}

Result<RunHistory> read_run(const fs::path& directory) {
  std::error_code failed;
  const auto kind = fs::status(directory, failed).type();
  if (kind == fs::file_type::not_found)
    return fail(ErrorKind::not_found, "no run directory " + directory.string() + ": `paceline run` names its own");
  if (kind == fs::file_type::none)
    return fail(ErrorKind::internal, "read " + directory.string() + ": " + failed.message());
  if (kind != fs::file_type::directory)
    return fail(ErrorKind::invalid, directory.string() + " is no directory of a run");
  const fs::path metrics = directory / "metrics.jsonl";
  if (!is_run(directory)) {
    return fail(ErrorKind::invalid, directory.string() +
                                        " is no directory of a training run: it has neither configuration.json nor "
                                        "metrics.jsonl");
  }

  RunHistory run;
  run.directory = directory;
  auto configuration = read_object(directory / "configuration.json", run.notes);
  if (!configuration) return tl::unexpected(configuration.error());
  run.options = object_in(*configuration, "options");
  run.environment = object_in(*configuration, "environment");
  run.program = object_in(*configuration, "program");
  auto result = read_object(directory / "result.json", run.notes);
  if (!result) return tl::unexpected(result.error());

  MetricsReader reader(run.options);
  if (fs::exists(metrics, failed))
    PACELINE_TRY(
        observe::read_lines(metrics.string(), [&](std::string_view line, bool whole) { reader.on_line(line, whole); }));

  if (!reader.has_figures() && result->empty()) {
    return fail(ErrorKind::invalid, directory.string() + " has no figures (yet): its metrics.jsonl " +
                                        (fs::exists(metrics, failed) ? "tells of no update" : "is missing"));
  }
  run.ended = !result->empty();
  run.result = run.ended ? std::move(*result) : reader.record().result();
  run.failed = run.result.contains("failure");
  run.outcome = outcome_of(run, reader.record()) + lost_words(run.result);
  reader.finish(run);
  return run;
}

}  // namespace paceline::recorded
