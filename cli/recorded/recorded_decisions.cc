#include "cli/recorded/recorded_decisions.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "cli/recorded/json_fields.h"
#include "runtime/base/content_hash.h"
#include "runtime/base/json.h"
#include "runtime/observe/format.h"
#include "runtime/observe/read_file.h"

namespace paceline::recorded {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Discarded where there is no such file.
Result<json> read_json(const fs::path& path) {
  const auto text = observe::read_file(path.string(), observe::kJsonBytesMax);
  if (!text && text.error().kind != ErrorKind::not_found) return tl::unexpected(text.error());
  return parse_json(text.value_or(""));
}

constexpr std::size_t kNamesMax = 3;

/// The files of a folder that were written after the run had begun: "a.png, b.png and 2 more". Of other changes a
/// folder's hash does not tell which file it was.
std::string written_since(const std::string& folder, const std::string& begun) {
  std::set<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    std::error_code gone;
    const auto written = it->last_write_time(gone);
    if (gone || !it->is_regular_file(gone)) continue;
    const auto at = std::chrono::file_clock::to_sys(written);
    if (observe::utc_text(std::chrono::time_point_cast<std::chrono::system_clock::duration>(at)) > begun)
      names.insert(it->path().filename().string());
  }
  std::string text;
  std::size_t shown = 0;
  for (const auto& name : names) {
    if (shown == kNamesMax) return text + " and " + std::to_string(names.size() - shown) + " more";
    text += (shown++ == 0 ? "" : ", ") + name;
  }
  return text;
}

std::string changed_folder(const std::string& path, const std::string& hash, const std::string& begun) {
  if (hash_of_folder(path).value_or("") == hash) return "";
  const auto names = written_since(path, begun);
  return path + " changed: " +
         (names.empty() ? "files were added, removed, or replaced by older ones"
                        : names + " was written since the run began");
}

std::string changed(const std::string& path, const std::string& hash, const std::string& begun) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return changed_folder(path, hash, begun);
  const auto now = hash_of_file(path);
  if (!now) return path + " is gone";
  return *now == hash ? ""
                      : path + " changed (its content was " + hash.substr(0, 12) + ", is " + now->substr(0, 12) + ")";
}

/// Whether all that it names is of a run of so many workers and nodes.
bool is_of(const scheduler::Record& record, std::size_t workers, std::int32_t nodes) {
  const auto is_worker = [&](Rank rank) { return rank.value >= -1 && rank.value < static_cast<std::int64_t>(workers); };
  return std::all_of(record.decisions.begin(), record.decisions.end(), [&](const scheduler::Decision& d) {
    return is_worker(d.rank) && d.node.value >= -1 && d.node.value < nodes &&
           std::all_of(d.contributions.begin(), d.contributions.end(),
                       [&](const auto& c) { return is_worker(c.rank); });
  });
}

/// None of its workers was there at the end.
bool is_lost(const RecordedRun& run, std::int32_t node) {
  const auto is_among = [&](const char* name, std::size_t rank) {
    const auto ranks = run.result.find(name);
    return ranks != run.result.end() && ranks->is_array() &&
           std::find(ranks->begin(), ranks->end(), rank) != ranks->end();
  };
  bool any = false;
  for (std::size_t rank = 0; rank < run.node_of.size(); ++rank) {
    if (run.node_of[rank] != node) continue;
    if (!is_among("lost", rank) && !is_among("vacant", rank)) return false;
    any |= is_among("lost", rank);
  }
  return any;
}

constexpr std::int32_t kNodesMax = 1024;

}  // namespace

Result<RecordedRun> read_recorded(const fs::path& directory) {
  std::error_code failed;
  if (!fs::is_directory(directory, failed))
    return fail(ErrorKind::not_found, "there is no run directory " + directory.string());
  RecordedRun run;
  run.directory = fs::absolute(directory);
  const auto configuration = read_json(directory / "configuration.json");
  if (!configuration) return tl::unexpected(configuration.error());
  run.options = object_in(*configuration, "options");
  run.environment = object_in(*configuration, "environment");
  run.program = object_in(*configuration, "program");
  if (run.options.empty())
    return fail(ErrorKind::not_found, directory.string() +
                                          " is no directory of a training run: it has no "
                                          "configuration.json");
  const auto first = scheduler::read_record(scheduler::record_path(directory.string(), NodeId{0}));
  if (!first && first.error().kind == ErrorKind::not_found)
    return fail(ErrorKind::not_found, directory.string() +
                                          " has no record of its decisions (decisions-0.bin): it was run by an older "
                                          "Paceline, or never began to train");

  auto result = read_json(directory / "result.json");
  if (!result) return tl::unexpected(result.error());
  run.result = *std::move(result);
  if (!first && !run.result.is_object()) return tl::unexpected(first.error());  // Else the node may have been lost.
  if (!run.result.is_object())
    return fail(ErrorKind::invalid, directory.string() +
                                        " has no result.json: only a run that came to its end can be "
                                        "replayed");
  if (run.result.contains("failure") || run.result.value("interrupted", false))
    return fail(ErrorKind::invalid, directory.string() + " did not come to its end (it " +
                                        (run.result.contains("failure") ? "failed" : "was interrupted") +
                                        "): only a run that did can be replayed");
  const auto nodes = run.result.find("nodes");
  if (nodes == run.result.end() || !nodes->is_array() || nodes->empty())
    return fail(ErrorKind::invalid, directory.string() + "/result.json does not say where the workers were");
  for (const json& node : *nodes) run.node_of.push_back(node.is_number_integer() ? node.get<std::int32_t>() : -1);
  for (const std::int32_t node : run.node_of)
    if (node < 0 || node >= kNodesMax)
      return fail(ErrorKind::invalid, directory.string() + "/result.json does not say where the workers were");
  const std::int32_t all_nodes = 1 + *std::max_element(run.node_of.begin(), run.node_of.end());
  for (const std::int32_t node : std::set<std::int32_t>(run.node_of.begin(), run.node_of.end())) {
    const auto path = scheduler::record_path(directory.string(), NodeId{node});
    auto record = is_lost(run, node) ? scheduler::read_record_of_killed(path) : scheduler::read_record(path);
    if (!record) return tl::unexpected(record.error());
    if (!record->ended) run.lost_nodes.insert(node);
    if (!is_of(*record, run.node_of.size(), all_nodes))
      return fail(ErrorKind::invalid, directory.string() + "/result.json is of another run than its decisions");
    run.records.emplace(node, std::move(*record));
  }
  return run;
}

std::vector<std::string> changes_since(const RecordedRun& run) {
  std::vector<std::string> changes;
  const auto add = [&](const std::string& change) {
    if (!change.empty()) changes.push_back(change);
  };
  const std::string begun = text_of(run.program, "begun");
  const json script = object_in(run.program, "script");
  if (!script.empty()) add(changed(text_of(script, "path"), text_of(script, "hash"), begun));
  const json files = object_in(run.result, "files");
  for (const auto& [path, hash] : files.items())
    add(changed(path, hash.is_string() ? hash.get<std::string>() : std::string(), begun));
  return changes;
}

std::vector<std::string> differing_models(const json& result, const json& replayed) {
  std::vector<std::string> differ;
  const json before = object_in(result, "models");
  const json now = object_in(replayed, "models");
  for (const auto& [rank, model] : before.items()) {
    if (!now.contains(rank)) {
      differ.push_back("worker " + rank + " did not come to the end");
    } else if (now[rank] != model) {
      differ.push_back("worker " + rank + " ended with other weights");
    }
  }
  if (before.empty()) differ.emplace_back("the run did not record with which weights its workers ended");
  return differ;
}

}  // namespace paceline::recorded
