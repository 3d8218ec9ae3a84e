#include "algorithms/job/job_summary.h"

#include "algorithms/job/metric.h"
#include "runtime/base/json.h"
#include "runtime/observe/format.h"

namespace paceline::job {

namespace {

/// What became of the samples that are not in the model, of all epochs; empty: all are.
std::string unused_of(const nlohmann::json& ledger) {
  std::int64_t committed = 0;
  std::string text;
  for (const auto& epoch : ledger) committed += epoch.value("committed", std::int64_t{0});
  for (const char* const what : kUnused) {
    std::int64_t sum = 0;
    for (const auto& epoch : ledger) sum += epoch.value(what, std::int64_t{0});
    if (sum > 0) text += ", " + std::to_string(sum) + " " + what;
  }
  return text.empty() ? text : "in the model: " + std::to_string(committed) + " samples" + text;
}

}  // namespace

std::vector<std::string> summary_of(const JobRecord& record) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const bool all = record.updates() > 0 && record.update() >= record.updates();
  std::vector<std::string> lines;
  if (!record.failure() && (all || !record.stop_reason().empty()))
    lines.push_back(all ? "all " + number(record.updates()) + " updates are done"
                        : "ended after " + number(record.update()) + " updates: " + record.stop_reason());

  double wait_s = 0;
  for (const auto& [rank, worker] : record.workers()) wait_s += worker.wait_s;
  const auto workers = static_cast<std::int64_t>(record.workers().size());
  lines.push_back(number(record.samples()) +
                  observe::format(" samples in %.1f s (%.0f samples/s)", record.clock_s(), record.samples_per_s()) +
                  (workers > 1 ? observe::format("; %lld workers waited for %.1f s together",
                                                 static_cast<long long>(workers), wait_s)
                               : ""));

  if (auto unused = unused_of(record.ledger()); !unused.empty()) lines.push_back(std::move(unused));

  if (const auto best = record.best()) {
    const Metric& metric = record.metric();
    const Evaluation& last = record.evaluations().back();
    lines.push_back(metric.name + " " + text(metric, last.value) +
                    (last.update == best->update
                         ? ", the best of " + number(std::ssize(record.evaluations()))
                         : ", the best was " + text(metric, best->value) + " after update " + number(best->update)));
  }
  if (!record.lost().empty()) {
    std::string ranks;
    for (const auto rank : record.lost()) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    lines.push_back("lost on the way: worker" + std::string(record.lost().size() > 1 ? "s " : " ") + ranks);
  }
  return lines;
}

}  // namespace paceline::job
