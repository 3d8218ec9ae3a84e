#include "cli/status_waits.h"

#include <algorithm>
#include <vector>

#include "cli/cells.h"
#include "runtime/base/json.h"
#include "runtime/observe/format.h"

namespace paceline::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kShownMax = 16;

std::string workers_text(double workers) { return number_text(workers) + (workers == 1 ? " worker" : " workers"); }

/// "driver/1-2 (square)".
std::string owner_text(const json& tasks) {
  const auto path = cell(tasks, "program");
  const auto program = path.substr(path.rfind('/') + 1);
  return cell(tasks, "owner") + (program.empty() || program == "-" ? "" : " (" + program + ")");
}

/// "node 0: 0 of 2 cpus are free, 1 GiB of 4 GiB of memory; driver/1-2 holds 2 cpus with 2 workers, for 31 s".
std::string node_text(const json& node, const json& tasks) {
  std::string text = "node " + cell(node, "node");
  if (node.value("answers", json()) != true) return text + " does not answer";
  for (const char* what : {"cpus", "memory"})
    if (number(tasks, what) > number(node, what))
      return text + " has only " + capacity_text({{what, number(node, what)}});
  text += ": " + number_text(number(node, "cpus_free")) + " of " + capacity_text({{"cpus", number(node, "cpus")}}) +
          " are free";
  if (number(tasks, "memory") > 0)
    text += ", " + observe::memory_text(number(node, "memory_free")) + " of " +
            capacity_text({{"memory", number(node, "memory")}});
  for (const json& hold : list(node, "held"))
    text += "; " + cell(hold, "owner") + (cell(hold, "owner") == cell(tasks, "owner") ? " itself" : "") + " holds " +
            capacity_text(hold) + " with " + workers_text(number(hold, "workers")) + ", for " +
            duration(hold, "since_s");
  return text;
}

std::string tasks_text(const json& status, const json& tasks) {
  const auto on = cell(tasks, "on");
  std::string text = "tasks of " + owner_text(tasks) + " wait for " + capacity_text(tasks) + " each" +
                     (on == "-" ? "" : " on node " + on) + ", for " + duration(tasks, "waits_s") + ": " +
                     (number(tasks, "lent") == 0 ? "no worker" : workers_text(number(tasks, "lent"))) +
                     (number(tasks, "lent") > 1 ? " are" : " is") + " lent, up to " + cell(tasks, "missing") +
                     " more would be of use\n";
  for (const json& node : list(status, "nodes"))
    if (node.is_object() && (on == "-" || on == cell(node, "node"))) text += "  " + node_text(node, tasks) + "\n";
  return text;
}

/// "worker 3 on node 0 (tasks of driver/1-2) waits for actor 'counter', for 0:12".
std::string call_text(const json& worker) {
  const auto name = cell(worker, "actor_name");
  const auto what = cell(worker, "actor") == "-"  ? "tasks of " + cell(worker, "owner")
                    : name.empty() || name == "-" ? "actor " + cell(worker, "actor")
                                                  : "actor '" + name + "'";
  return "worker " + cell(worker, "worker") + " on node " + cell(worker, "node") + " (" + what + ") waits for " +
         cell(worker, "waits_for") + ", for " + duration(worker, "waits_s") + "\n";
}

}  // namespace

std::string waits_text(const json& status) {
  std::vector<std::string> lines;
  // Those that have nothing first.
  for (const bool has_some : {false, true})
    for (const json& tasks : list(status, "tasks"))
      if (number(tasks, "missing") > 0 && (number(tasks, "lent") > 0) == has_some)
        lines.push_back(tasks_text(status, tasks));
  for (const json& worker : list(status, "workers"))
    if (cell(worker, "waits_for") != "-") lines.push_back(call_text(worker));
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), kShownMax); ++i) text += lines[i];
  if (lines.size() > kShownMax)
    text += "and " + std::to_string(lines.size() - kShownMax) + " more that wait: `paceline list tasks` and workers\n";
  return text;
}

}  // namespace paceline::cli
