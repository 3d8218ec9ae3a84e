#include "cli/prometheus.h"

#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "runtime/base/json.h"

namespace paceline::cli {
namespace {

using nlohmann::json;
using Labels = std::vector<std::pair<std::string, std::string>>;

struct Figure {
  const char* name;
  const char* type;
  const char* help;
  const char* field;
};

constexpr Figure kOfNodes[] = {
    {"paceline_node_answers", "gauge", "1 where the node's agent answers", "answers"},
    {"paceline_node_workers", "gauge", "Worker processes of the node", "workers"},
    {"paceline_node_resident_bytes", "gauge", "Memory of the node's agent", "rss"},
};
constexpr Figure kOfJobs[] = {
    {"paceline_job_updates_done", "gauge", "Updates that are done", "update"},
    {"paceline_job_updates", "gauge", "Updates that are planned", "updates"},
    {"paceline_job_training_seconds", "gauge", "Training time; evaluations do not count", "clock_s"},
    {"paceline_job_loss", "gauge", "Training loss of the last update", "loss"},
    {"paceline_job_median_step_seconds", "gauge", "Median time of the last steps", "median_step_s"},
    {"paceline_job_period", "gauge", "Steps from one averaging of all to the next", "period"},
};
constexpr Figure kOfCounters[] = {
    {"paceline_job_group_averages_total", "counter", "Averagings of groups", "group_averages"},
    {"paceline_job_global_averages_total", "counter", "Averagings of all", "global_averages"},
    {"paceline_job_skipped_steps_total", "counter", "Iterations that late workers jumped over", "skipped"},
    {"paceline_job_late_merges_total", "counter", "Late contributions that were merged", "late_merges"},
    {"paceline_job_abandoned_batches_total", "counter", "Mini-batches that were abandoned", "abandoned_bodies"},
};
constexpr Figure kOfEvaluations[] = {
    {"paceline_job_metric", "gauge", "Value of the newest evaluation; of which metric, the label says", "value"},
    {"paceline_job_metric_update", "gauge", "Updates that were done at the newest evaluation", "update"},
};
constexpr Figure kOfLogged[] = {
    {"paceline_job_logged", "gauge", "Newest value of what the job's workers log under this name", "value"},
    {"paceline_job_logged_update", "gauge", "Updates that were done when it was logged", "update"},
};
constexpr Figure kOfWorkers[] = {
    {"paceline_worker_samples_total", "counter", "Training samples that the worker has processed", "samples"},
    {"paceline_worker_samples_per_second", "gauge", "The same over training time", "samples_per_s"},
    {"paceline_worker_step", "gauge", "Iteration that the worker is in", "step"},
    {"paceline_worker_lag", "gauge", "Updates that the worker is behind", "lag"},
    {"paceline_worker_compute_seconds_total", "counter", "Time that the worker computed", "compute_s"},
    {"paceline_worker_wait_seconds_total", "counter", "Time that the worker waited for others", "wait_s"},
};

std::string label_text(const std::string& text) {
  std::string label_text;
  for (const char c : text) {
    if (c == '\\' || c == '"') label_text += '\\';
    label_text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return label_text;
}

/// "3" or "wagma(sync=5)"; "" where there is no such field.
std::string label_of(const json& object, const char* field) {
  const auto found = object.is_object() ? object.find(field) : object.end();
  if (!object.is_object() || found == object.end()) return "";
  return found->is_string() ? found->get<std::string>() : json_text(*found);
}

/// Those that have `field`, each with its labels: one metric.
struct Object {
  const json* values;
  Labels labels;
};

void append(std::string& text, const Figure& figure, const std::vector<Object>& objects) {
  std::string lines;
  for (const auto& [values, labels] : objects) {
    const auto found = values->find(figure.field);
    if (found == values->end() || !(found->is_number() || found->is_boolean())) continue;
    const double value = found->is_boolean() ? (found->get<bool>() ? 1.0 : 0.0) : found->get<double>();
    if (!std::isfinite(value)) continue;
    lines += figure.name;
    for (const auto& [name, label] : labels)
      lines += (&name == &labels.front().first ? "{" : ",") + name + "=\"" + label_text(label) + "\"";
    char number[40];
    std::snprintf(number, sizeof number, "%.17g", value);
    lines += (labels.empty() ? " " : "} ") + std::string(number) + "\n";
  }
  if (!lines.empty())
    text += std::string("# HELP ") + figure.name + " " + figure.help + "\n# TYPE " + figure.name + " " + figure.type +
            "\n" + lines;
}

/// The objects of a list, each with what `labels` gives for it.
template <class LabelsOf>
void collect(const json& from, const char* list, const LabelsOf& labels, std::vector<Object>& objects) {
  const auto found = from.is_object() ? from.find(list) : from.end();
  if (!from.is_object() || found == from.end() || !found->is_array()) return;
  for (const json& object : *found)
    if (object.is_object()) objects.push_back({&object, labels(object)});
}

}  // namespace

std::string prometheus_text(const json& status) {
  std::vector<Object> nodes, jobs, counters, evaluations, logged, workers;
  collect(
      status, "nodes",
      [](const json& node) {
        return Labels{{"node", label_of(node, "node")}};
      },
      nodes);
  collect(
      status, "jobs",
      [](const json& job) {
        return Labels{{"job", label_of(job, "job")}, {"strategy", label_of(job, "strategy")}};
      },
      jobs);
  for (const auto& [job, labels] : jobs) {
    if (const auto found = job->find("counters"); found != job->end() && found->is_object())
      counters.push_back({&*found, labels});
    const auto named = [&of_job = labels](const json& value) {
      Labels all = of_job;
      all.emplace_back("name", label_of(value, "name"));
      return all;
    };
    if (const auto found = job->find("evaluation"); found != job->end() && found->is_object())
      evaluations.push_back({&*found, named(*found)});
    collect(*job, "logged", named, logged);
    collect(
        *job, "workers",
        [&of_job = labels](const json& worker) {
          Labels all = of_job;
          all.emplace_back("worker", label_of(worker, "rank"));
          all.emplace_back("node", label_of(worker, "node"));
          return all;
        },
        workers);
  }
  std::string text;
  for (const Figure& figure : kOfNodes) append(text, figure, nodes);
  for (const Figure& figure : kOfJobs) append(text, figure, jobs);
  for (const Figure& figure : kOfCounters) append(text, figure, counters);
  for (const Figure& figure : kOfEvaluations) append(text, figure, evaluations);
  for (const Figure& figure : kOfLogged) append(text, figure, logged);
  for (const Figure& figure : kOfWorkers) append(text, figure, workers);
  return text;
}

}  // namespace paceline::cli
