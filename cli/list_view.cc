#include "cli/list_view.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "algorithms/job/metric.h"
#include "cli/cells.h"
#include "cli/running.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/json.h"
#include "runtime/base/readable.h"
#include "runtime/observe/table.h"

namespace paceline::cli {
namespace {

using nlohmann::json;

struct Kind {
  Listed listed;
  const char* name;
  const char* none;  ///< What is said where there is none.
  std::vector<std::string_view> states;
  bool have_owners;
};

const Kind kKinds[] = {
    {Listed::nodes, "nodes", "no node is there", {"alive", "silent", "missing"}, false},
    {Listed::workers,
     "workers",
     "no worker runs",
     {"starting", "idle", "lent", "waiting", "constructing", "actor", "frozen", "ending"},
     true},
    {Listed::tasks, "tasks", "nobody has tasks", {"waiting", "served"}, true},
    {Listed::jobs,
     "jobs",
     "no job has run yet",
     {"starting", "running", "waiting", "ended", "failed", "interrupted"},
     false},
    {Listed::actors, "actors", "no actor lives", {"starting", "constructing", "alive"}, true},
};

const Kind& kind_of(Listed listed) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& kind) { return kind.listed == listed; });
}

template <class Texts>
std::string joined(const Texts& texts) {
  std::string all;
  for (const auto& text : texts) all += (all.empty() ? "" : ", ") + std::string(text);
  return all;
}

json with(json row, const char* name, json value) {
  row[name] = std::move(value);
  return row;
}

/// Those that the head does not have are there, too.
ListRows nodes_of(const json& status) {
  ListRows rows;
  std::set<double> known;
  for (const json& node : list(status, "nodes")) {
    if (!node.is_object()) continue;
    known.insert(number(node, "node"));
    const bool is_drained = node.value("drained", json()) == true;
    rows.push_back(with(node, "state",
                        node.value("answers", json()) != true ? "silent"
                        : is_drained                          ? "drained"
                                                              : "alive"));
  }
  for (std::int64_t node = 0; static_cast<double>(node) < std::min(number(status, "nodes_expected"), 1e3); ++node)
    if (!known.contains(static_cast<double>(node))) rows.push_back({{"node", node}, {"state", "missing"}});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const json& a, const json& b) { return number(a, "node") < number(b, "node"); });
  return rows;
}

/// Those that are over first. Nodes may still be closing one.
ListRows jobs_of(const json& status) {
  ListRows rows;
  std::set<std::string> over;
  for (const json& job : list(status, "jobs_over"))
    if (job.is_object() && over.insert(cell(job, "job")).second) rows.push_back(job);
  for (const json& job : list(status, "jobs")) {
    if (!job.is_object() || over.contains(cell(job, "job"))) continue;
    const bool begins = job.contains("starting") || !job.contains("update");
    rows.push_back(with(job, "state", begins ? "starting" : job.contains("waiting") ? "waiting" : "running"));
  }
  return rows;
}

ListRows all_of(Listed listed, const json& status) {
  if (listed == Listed::nodes) return nodes_of(status);
  if (listed == Listed::jobs) return jobs_of(status);
  ListRows rows;
  for (const json& row : list(status, kind_of(listed).name))
    if (row.is_object()) rows.push_back(row);
  return rows;
}

bool is_on(Listed listed, const json& row, std::int64_t node) {
  if (listed != Listed::jobs) return number(row, "node") == static_cast<double>(node);
  const json& nodes = list(row, "nodes");  // Of a job that is over.
  if (std::find(nodes.begin(), nodes.end(), json(node)) != nodes.end()) return true;
  const json& workers = list(row, "workers");
  return std::any_of(workers.begin(), workers.end(),
                     [&](const json& worker) { return number(worker, "node") == static_cast<double>(node); });
}

/// Whose a row is, and on whose behalf.
std::set<std::string> owners_of(const json& row) {
  std::set<std::string> owners;
  if (row.value("detached", json()) == true) owners.insert("detached");
  for (const char* name : {"owner", "driver"})
    if (const auto owner = cell(row, name); owner != "-" && !owner.empty()) owners.insert(owner);
  return owners;
}

bool is_of(const json& row, const std::string& owner) {
  const auto owners = owners_of(row);
  return std::any_of(owners.begin(), owners.end(),
                     [&](const std::string& its) { return its == owner || its.starts_with(owner + "-"); });
}

Result<void> check_owner(const Kind& kind, const ListRows& rows, const std::string& owner) {
  constexpr std::size_t kShown = 10;
  const std::string what = kind.name;
  if (!kind.have_owners) return fail(ErrorKind::invalid, what + " have no owners: leave out --owner");
  std::set<std::string> owners;
  for (const json& row : rows) owners.merge(owners_of(row));
  if (std::any_of(rows.begin(), rows.end(), [&](const json& row) { return is_of(row, owner); })) return {};
  if (owners.empty()) return fail(ErrorKind::not_found, "nobody has " + what + ", " + owner + " neither");
  std::vector<std::string> shown(owners.begin(), owners.end());
  if (shown.size() > kShown) {
    shown.resize(kShown);
    shown.push_back("and " + std::to_string(owners.size() - kShown) + " more");
  }
  return fail(ErrorKind::not_found, owner + " has no " + what + ": those who have are " + joined(shown));
}

Result<void> check(const Kind& kind, const json& status, const ListRows& rows, const ListFilter& filter) {
  if (filter.node) {
    const auto nodes = static_cast<std::int64_t>(std::min(number(status, "nodes_expected"), 1e6));
    if (*filter.node < 0 || *filter.node >= nodes)
      return fail(ErrorKind::invalid, "there is no node " + std::to_string(*filter.node) + ": this cluster has " +
                                          (nodes == 1 ? "node 0" : "nodes 0 to " + std::to_string(nodes - 1)));
  }
  if (!filter.owner.empty()) PACELINE_TRY(check_owner(kind, rows, filter.owner));
  const auto& states = kind.states;
  if (filter.state.empty() || std::find(states.begin(), states.end(), filter.state) != states.end()) return {};
  return fail(ErrorKind::invalid,
              std::string(kind.name) + " are never '" + filter.state + "': their states are " + joined(states));
}

/// "1 cpu", "0.5 cpus and 2 GiB of memory on node 1"; of an actor its class and name.
std::string use_of(const json& worker) {
  if (cell(worker, "actor") != "-") {
    const auto name = cell(worker, "actor_name");
    return cell(worker, "class") + (name.empty() || name == "-" ? "" : " " + name);
  }
  if (cell(worker, "cpus") == "-") return "-";
  return capacity_text(worker) + (cell(worker, "on") == "-" ? "" : " on node " + cell(worker, "on"));
}

std::string pid_cell(const json& row) { return number(row, "pid") > 0 ? cell(row, "pid") : "-"; }
std::string cpus_cell(const json& row, const char* name) {
  return cell(row, name) == "-" ? "-" : number_text(number(row, name));
}
std::string text_cell(const json& row, const char* name) {
  const auto text = cell(row, name);
  return text.empty() ? "-" : text;
}

observe::Table nodes_table(const ListRows& rows) {
  observe::Table table(
      {"node", "state", "address", "cpus", "free", "memory", "free", "workers", "actors", "starts", "pid"});
  for (const json& node : rows)
    table.add({cell(node, "node"), cell(node, "state"), cell(node, "address"), cell(node, "cpus"),
               cpus_cell(node, "cpus_free"), memory_cell(node, "memory"), memory_cell(node, "memory_free"),
               cell(node, "workers"), cell(node, "actors"), cell(node, "starts"), pid_cell(node)});
  return table;
}

observe::Table workers_table(const ListRows& rows) {
  observe::Table table({"worker", "node", "pid", "state", "owner", "for", "since", "runs", "waits for", "log"});
  for (const json& worker : rows)
    table.add({cell(worker, "worker"), cell(worker, "node"), pid_cell(worker), cell(worker, "state"),
               cell(worker, "owner"), use_of(worker),
               duration(worker, cell(worker, "lent_s") == "-" ? "age_s" : "lent_s"), running_text(worker),
               cell(worker, "waits_for") == "-" ? "-" : cell(worker, "waits_for") + ", " + duration(worker, "waits_s"),
               text_cell(worker, "log")});
  return table;
}

observe::Table tasks_table(const ListRows& rows) {
  observe::Table table(
      {"owner", "node", "program", "state", "cpus", "memory", "on", "lent", "missing", "waits", "runs"});
  for (const json& task : rows)
    table.add({cell(task, "owner"), cell(task, "node"), text_cell(task, "program"), cell(task, "state"),
               cpus_cell(task, "cpus"), memory_cell(task, "memory"), cell(task, "on"), cell(task, "lent"),
               cell(task, "missing"), duration(task, "waits_s"), running_text(task)});
  return table;
}

/// Its last evaluation, or why it failed.
std::string result_cell(const json& job) {
  constexpr std::size_t kShown = 60;
  if (const auto failure = text_cell(job, "failure"); failure != "-")
    return failure.size() <= kShown ? failure : std::string(first_of(failure, kShown)) + "...";
  const auto name = text_cell(job, "metric");
  return name == "-" ? "-" : name + " " + job::text(Metric{name, maximise, ""}, number(job, "value"));
}

observe::Table jobs_table(const ListRows& rows) {
  observe::Table table({"job", "state", "strategy", "update", "updates", "workers", "time", "result", "script"});
  for (const json& job : rows) {
    const bool is_over = job.contains("ended");
    table.add({cell(job, "job"), cell(job, "state"), cell(job, "strategy"), cell(job, is_over ? "updates" : "update"),
               is_over ? "-" : cell(job, "updates"), std::to_string(list(job, is_over ? "nodes" : "workers").size()),
               duration(job, is_over ? "took_s" : "age_s"), result_cell(job), text_cell(job, "script")});
  }
  return table;
}

observe::Table actors_table(const ListRows& rows) {
  observe::Table table({"id", "name", "class", "node", "pid", "state", "owner", "calls"});
  for (const json& actor : rows)
    table.add({cell(actor, "id"), text_cell(actor, "name"), cell(actor, "class"), cell(actor, "node"), pid_cell(actor),
               cell(actor, "state"), actor.value("detached", json()) == true ? "detached" : cell(actor, "owner"),
               cell(actor, "calls")});
  return table;
}

}  // namespace

Result<Listed> listed_by(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return kind.listed;
    names.emplace_back(kind.name);
  }
  const auto meant = did_you_mean(name, names);
  return fail(ErrorKind::invalid, "there is no list of " + name +
                                      (meant ? "; did you mean " + std::string(*meant) + "?" : "") +
                                      ": try `paceline list` with one of " + joined(names));
}

std::string name_of(Listed listed) { return kind_of(listed).name; }

json question_for(Listed listed) {
  json question{{"patient", true}};
  if (listed == Listed::workers || listed == Listed::tasks || listed == Listed::actors)
    question[name_of(listed)] = "all";
  if (listed == Listed::jobs) question["jobs_over"] = true;
  if (listed == Listed::workers || listed == Listed::tasks) question["workers"] = question["running"] = "all";
  return question;
}

Result<ListRows> rows_of(Listed listed, const json& status, const ListFilter& filter) {
  auto rows = all_of(listed, status);
  PACELINE_TRY(check(kind_of(listed), status, rows, filter));
  std::erase_if(rows, [&](const json& row) {
    return (filter.node && !is_on(listed, row, *filter.node)) || (!filter.owner.empty() && !is_of(row, filter.owner)) ||
           (!filter.state.empty() && cell(row, "state") != filter.state);
  });
  return rows;
}

std::string problem_text(const json& status) {
  const json problem = status.is_object() ? status.value("problem", json()) : json();
  return problem.is_string() ? "the head cannot keep what becomes of jobs: " + readable(problem.get<std::string>())
                             : "";
}

std::string rows_text(Listed listed, const ListRows& rows) {
  if (rows.empty()) return std::string(kind_of(listed).none) + "\n";
  switch (listed) {
    case Listed::nodes: return nodes_table(rows).text();
    case Listed::workers: return workers_table(rows).text();
    case Listed::tasks: return tasks_table(rows).text();
    case Listed::jobs: return jobs_table(rows).text();
    case Listed::actors: break;
  }
  return actors_table(rows).text();
}

std::string rows_json(const ListRows& rows) {
  std::string text;
  for (const json& row : rows) text += json_text(row) + "\n";
  return text;
}

std::vector<std::string> silent_nodes(Listed listed, const json& status, const ListFilter& filter) {
  std::vector<std::string> silent;
  for (const json& node : nodes_of(status)) {
    if (cell(node, "state") == "alive") continue;
    if (listed != Listed::jobs && filter.node && !is_on(Listed::nodes, node, *filter.node)) continue;
    silent.push_back(cell(node, "node"));
  }
  return silent;
}

}  // namespace paceline::cli
