#include "cli/recorded/recorded_decisions.h"

#include <fstream>
#include <set>
#include <sstream>

#include "cli/recorded/json_fields.h"
#include "runtime/base/content_hash.h"
#include "runtime/base/json.h"

namespace paceline::recorded {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json read_json(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return parse_json(text.str());
}

std::string changed(const std::string& path, const std::string& hash) {
  const auto now = hash_of_file(path);
  if (!now) return path + " is gone";
  return *now == hash ? ""
                      : path + " changed (its content was " + hash.substr(0, 12) + ", is " + now->substr(0, 12) + ")";
}

}  // namespace

Result<RecordedRun> read_recorded(const fs::path& directory) {
  std::error_code failed;
  if (!fs::is_directory(directory, failed))
    return fail(ErrorKind::not_found, "there is no run directory " + directory.string());
  RecordedRun run;
  run.directory = fs::absolute(directory);
  const json configuration = read_json(directory / "configuration.json");
  run.options = object_in(configuration, "options");
  run.environment = object_in(configuration, "environment");
  run.program = object_in(configuration, "program");
  if (run.options.empty())
    return fail(ErrorKind::not_found, directory.string() +
                                          " is no directory of a training run: it has no "
                                          "configuration.json");
  const auto first = scheduler::read_record(scheduler::record_path(directory.string(), NodeId{0}));
  if (!first && first.error().kind == ErrorKind::not_found)
    return fail(ErrorKind::not_found, directory.string() +
                                          " has no record of its decisions (decisions-0.bin): it was run by an older "
                                          "Paceline, or never began to train");
  if (!first) return tl::unexpected(first.error());

  run.result = read_json(directory / "result.json");
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
  for (const std::int32_t node : std::set<std::int32_t>(run.node_of.begin(), run.node_of.end())) {
    auto record = scheduler::read_record(scheduler::record_path(directory.string(), NodeId{node}));
    if (!record) return tl::unexpected(record.error());
    run.records.emplace(node, std::move(*record));
  }
  return run;
}

std::vector<std::string> changes_since(const RecordedRun& run) {
  std::vector<std::string> changes;
  const auto add = [&](const std::string& change) {
    if (!change.empty()) changes.push_back(change);
  };
  const json script = object_in(run.program, "script");
  if (!script.empty()) add(changed(text_of(script, "path"), text_of(script, "hash")));
  const json files = object_in(run.result, "files");
  for (const auto& [path, hash] : files.items())
    add(changed(path, hash.is_string() ? hash.get<std::string>() : std::string()));
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
