#include "cli/status_view.h"

#include <algorithm>
#include <cmath>

#include "algorithms/job/metric.h"
#include "algorithms/job/sample_ledger.h"
#include "cli/cells.h"
#include "cli/list_view.h"
#include "cli/status_waits.h"
#include "runtime/base/instant.h"
#include "runtime/base/json.h"
#include "runtime/observe/format.h"
#include "runtime/observe/progress.h"
#include "runtime/observe/table.h"

namespace paceline::cli {

namespace {

using nlohmann::json;

constexpr std::size_t kLoggedMax = 16;  // Names that are shown,
constexpr std::size_t kChangesMax = 5;  // and times that somebody came or went.

/// "update 30 of 120 (25 %)".
std::string progress_text(const json& job) {
  std::string text = "update " + cell(job, "update") + " of " + cell(job, "updates");
  if (number(job, "updates") > 0)
    text += observe::format(" (%.0f %%)", std::floor(100 * number(job, "update") / number(job, "updates")));
  return text;
}

/// ", update 30, at 0:12": of training time.
std::string when(const json& value) {
  return ", update " + cell(value, "update") + ", at " +
         observe::duration_text(from_seconds(number(value, "clock_s"))) + "\n";
}

/// The newest evaluation, and the newest value of each name that is logged, a line each.
std::string values_text(const json& job) {
  std::string text;
  if (const auto found = job.is_object() ? job.find("evaluation") : job.end();
      job.is_object() && found != job.end() && found->is_object()) {
    const Metric metric{cell(*found, "name"), maximise, found->contains("unit") ? cell(*found, "unit") : ""};
    text += metric.name + " " + job::text(metric, number(*found, "value")) +
            (found->value("best", json()) == true ? " (the best so far)" : "") + when(*found);
  }
  const json& logged = list(job, "logged");
  for (std::size_t i = 0; i < std::min(logged.size(), kLoggedMax); ++i) {
    const json& value = logged[i];
    text += cell(value, "name") + " " +
            (cell(value, "value") == "-" ? "-" : observe::format("%.6g", number(value, "value"))) + " (worker " +
            cell(value, "worker") + ")" + when(value);
  }
  if (logged.size() > kLoggedMax)
    text += "and " + std::to_string(logged.size() - kLoggedMax) + " more names: --json has them\n";
  return text;
}

/// What became of the samples of the newest epoch that has begun, in those words that are not 0.
std::string samples_text(const json& job) {
  const json& ledger = list(job, "ledger");
  if (ledger.empty()) return {};
  const json& epoch = ledger.back();
  std::string text = cell(epoch, "committed") + " committed";
  for (const char* const what : job::kUnused)
    if (number(epoch, what) > 0) text += ", " + cell(epoch, what) + " " + what;
  return "of " + cell(epoch, "samples") + " samples of epoch " + cell(epoch, "epoch") + ": " + text + "\n";
}

/// Who came and went last.
std::string changes_text(const json& job) {
  const json& changes = list(job, "changes");
  std::string text;
  for (std::size_t i = changes.size() - std::min(changes.size(), kChangesMax); i < changes.size(); ++i)
    text +=
        observe::duration_text(from_seconds(number(changes[i], "ago_s"))) + " ago: " + cell(changes[i], "text") + "\n";
  return text;
}

std::string job_text(const json& job) {
  std::string text = "\njob " + cell(job, "job") + ": " + cell(job, "strategy") + ", " + progress_text(job);
  if (number(job, "age_s") > 0) text += ", for " + observe::duration_text(from_seconds(number(job, "age_s")));
  text += "\n";
  if (const auto script = cell(job, "script"); script != "-" && !script.empty()) text += "of " + script + "\n";
  if (const auto run = cell(job, "run_directory"); run != "-" && !run.empty()) text += "in " + run + "\n";
  text += samples_text(job);
  text += values_text(job);
  text += changes_text(job);
  if (!list(job, "workers").empty()) {
    observe::Table workers({"worker", "node", "pid", "state", "step", "lag", "samples/s"});
    for (const json& worker : list(job, "workers")) {
      workers.add({cell(worker, "rank"), cell(worker, "node"), number(worker, "pid") > 0 ? cell(worker, "pid") : "-",
                   cell(worker, "state"), cell(worker, "step"), cell(worker, "lag"), cell(worker, "samples_per_s")});
    }
    text += workers.text();
  }
  const auto waiting = job.is_object() ? job.find("waiting") : job.end();
  if (job.is_object() && waiting != job.end() && waiting->is_object()) {
    std::string missing;
    for (const json& rank : list(*waiting, "missing")) missing += (missing.empty() ? "" : ", ") + json_text(rank);
    if (!missing.empty()) {
      text += "the others wait for worker " + missing + " at update " + cell(*waiting, "update") + ", for " +
              cell(*waiting, "since_s") + " s\n";
    }
  }
  return text;
}

}  // namespace

std::string status_text(const json& status) {
  std::string text = "cluster '" + cell(status, "name") + "'\n";
  observe::Table nodes({"node", "pid", "workers", "cpus", "free", "memory"});
  for (const json& node : list(status, "nodes"))
    nodes.add({cell(node, "node") + (cell(node, "drained") == "true" ? " drained" : ""), cell(node, "pid"),
               cell(node, "workers"), cell(node, "cpus"),
               cell(node, "cpus_free") == "-" ? "-" : number_text(number(node, "cpus_free")), megabytes(node, "rss")});
  text += nodes.text();
  if (const auto waits = waits_text(status); !waits.empty()) text += "\n" + waits;
  if (const auto actors = rows_of(Listed::actors, status, {}); actors && !actors->empty())
    text += "\ndetached actors\n" + rows_text(Listed::actors, *actors);
  if (const auto problem = problem_text(status); !problem.empty()) text += "\n" + problem + "\n";
  if (list(status, "jobs").empty()) return text + "\nno job runs\n";
  for (const json& job : list(status, "jobs")) text += job_text(job);
  return text;
}

}  // namespace paceline::cli
