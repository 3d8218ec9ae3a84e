#include "cli/summary_view.h"

#include <cstdint>

#include "cli/cells.h"
#include "cli/list_view.h"
#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

using nlohmann::json;

void count(json& counts, const std::string& key) {
  counts[key] = static_cast<std::int64_t>(number(counts, key.c_str())) + 1;
}

/// "2 alive, 1 silent"; "0".
std::string counts_text(const json& counts) {
  std::string text;
  for (const auto& [key, value] : counts.items()) text += (text.empty() ? "" : ", ") + json_text(value) + " " + key;
  return text.empty() ? "0" : text;
}

}  // namespace

json summary_of(const json& status) {
  json summary{{"cpus", 0.0}, {"cpus_free", 0.0}};
  for (const Listed listed : {Listed::nodes, Listed::workers, Listed::actors, Listed::jobs}) {
    json& states = summary[name_of(listed)] = json::object();
    const auto rows = rows_of(listed, status, {});
    for (const json& row : rows ? *rows : ListRows{}) count(states, cell(row, "state"));
  }
  for (const json& node : list(status, "nodes"))
    for (const char* name : {"cpus", "cpus_free"}) summary[name] = summary[name].get<double>() + number(node, name);
  json& classes = summary["actors_by_class"] = json::object();
  const auto actors = rows_of(Listed::actors, status, {});
  for (const json& actor : actors ? *actors : ListRows{}) count(classes[cell(actor, "class")], cell(actor, "state"));
  json tasks{{"owners", 0}, {"lent", 0.0}, {"missing", 0.0}, {"waiting", 0}};
  const auto wants = rows_of(Listed::tasks, status, {});
  for (const json& row : wants ? *wants : ListRows{}) {
    tasks["owners"] = tasks["owners"].get<int>() + 1;
    for (const char* name : {"lent", "missing"}) tasks[name] = tasks[name].get<double>() + number(row, name);
    if (number(row, "lent") == 0 && number(row, "missing") > 0) tasks["waiting"] = tasks["waiting"].get<int>() + 1;
  }
  summary["tasks"] = std::move(tasks);
  return summary;
}

std::string summary_text(const json& summary) {
  std::string text = "nodes    " + counts_text(summary["nodes"]) + "; " + number_text(number(summary, "cpus_free")) +
                     " of " + number_text(number(summary, "cpus")) + " cpus are free\n";
  text += "workers  " + counts_text(summary["workers"]) + "\n";
  text += "actors   " + counts_text(summary["actors"]) + "\n";
  for (const auto& [type, states] : summary["actors_by_class"].items())
    text += "         " + type + ": " + counts_text(states) + "\n";
  const json& tasks = summary["tasks"];
  text += "tasks    " +
          (number(tasks, "owners") == 0
               ? std::string("0")
               : number_text(number(tasks, "lent")) + " workers lent for " + number_text(number(tasks, "owners")) +
                     " kinds of tasks, up to " + number_text(number(tasks, "missing")) +
                     " more would be of use; without any: " + number_text(number(tasks, "waiting"))) +
          "\n";
  return text + "jobs     " + counts_text(summary["jobs"]) + "\n";
}

}  // namespace paceline::cli
