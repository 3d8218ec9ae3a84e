#include "cli/compare.h"

#include <cmath>
#include <cstdio>
#include <optional>
#include <set>

#include "algorithms/job/metric.h"
#include "runtime/base/json.h"
#include "runtime/observe/table.h"

namespace paceline::cli {

namespace {

using nlohmann::json;

constexpr std::size_t kColumnsMax = 8;  // Names that have a column.
constexpr double kSame = 0.05;          // Less than this apart is called the same: runs differ as much by themselves.

std::optional<double> figure(const json& result, const char* name) {
  if (!result.is_object()) return std::nullopt;
  const auto found = result.find(name);
  if (found == result.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string text(std::optional<double> value, int decimals, const char* unit = "") {
  if (!value) return "-";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f%s", decimals, *value, unit);
  return buffer;
}

std::optional<double> times(std::optional<double> value, double factor) {
  return value ? std::optional(*value * factor) : std::nullopt;
}

/// All are runs of the same script.
Metric metric_of(const std::vector<Compared>& runs) {
  for (const auto& run : runs)
    if (run.result.is_object()) return job::metric_of(run.result);
  return {};
}

std::string evaluated(const json& result) {
  const auto metric = result.find("metric");
  const auto value = metric == result.end() ? std::nullopt : figure(*metric, "value");
  return value ? job::text(job::metric_of(result), *value) : "-";
}

/// " (lost 1, 3)": these workers left before the end, so that the figures are of fewer.
std::string lost_words(const json& result) {
  std::string ranks;
  for (const auto& rank : result.value("lost", json::array())) ranks += (ranks.empty() ? "" : ", ") + json_text(rank);
  return ranks.empty() ? "" : " (lost " + ranks + ")";
}

/// The names that any of the runs logged, in the order of the alphabet.
std::vector<std::string> logged_names(const std::vector<Compared>& runs) {
  std::set<std::string> names;
  for (const auto& run : runs) {
    const auto logged = run.result.is_object() ? run.result.find("logged") : run.result.end();
    if (!run.result.is_object() || logged == run.result.end() || !logged->is_object()) continue;
    for (const auto& [name, value] : logged->items()) names.insert(name);
  }
  return {names.begin(), names.end()};
}

std::string logged_text(const json& result, const std::string& name) {
  const auto logged = result.find("logged");
  const auto value = logged == result.end() ? std::nullopt : figure(*logged, name.c_str());
  if (!value) return "-";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.4g", *value);
  return buffer;
}

std::string ratio_words(double factor, const char* better, const char* worse) {
  char buffer[64];
  if (std::abs(factor - 1) <= kSame) return "no difference";
  std::snprintf(buffer, sizeof buffer, "%.1f times %s", factor > 1 ? factor : 1 / factor, factor > 1 ? better : worse);
  return buffer;
}

std::string words_for(const Compared& run, const Compared& base) {
  if (!run.result.is_object()) return run.strategy + " failed";
  const auto own = figure(run.result, "time_to_target_s");
  const auto other = figure(base.result, "time_to_target_s");
  const auto rate = figure(run.result, "samples_per_s");
  const auto base_rate = figure(base.result, "samples_per_s");
  const bool rates = rate && base_rate && *base_rate > 0;

  std::string words = run.strategy;
  if (own && other && *own > 0) {
    words +=
        " reached the target in " + text(own, 1, " s") + " (" + ratio_words(*other / *own, "sooner", "later") + ")";
  } else if (own) {
    words += " reached the target in " + text(own, 1, " s") + ", " + base.strategy + " did not";
  } else if (other) {
    words += " did not reach the target";
  } else if (rates) {
    words += " processed " + text(rate, 0) + " samples/s (" + ratio_words(*rate / *base_rate, "more", "fewer") + ")";
  } else {
    words += " finished";
  }
  if (rates && (own || other)) words += " at " + text(*rate / *base_rate, 2) + " times the samples/s";
  return words;
}

}  // namespace

std::string comparison_table(const std::vector<Compared>& runs) {
  std::vector<std::string> head{"strategy", "to target",     "samples/s",  "step",    metric_of(runs).name,
                                "waited",   "group avg",     "global avg", "skipped", "abandoned",
                                "updates",  "samples/update"};
  auto names = logged_names(runs);
  const std::size_t more = names.size() > kColumnsMax ? names.size() - kColumnsMax : 0;
  names.resize(names.size() - more);
  head.insert(head.end(), names.begin(), names.end());
  observe::Table table(std::move(head));
  for (const auto& [strategy, result] : runs) {
    if (!result.is_object()) {
      table.add({strategy, "failed"});
      continue;
    }
    std::vector<std::string> row{strategy + lost_words(result),
                                 text(figure(result, "time_to_target_s"), 1, " s"),
                                 text(figure(result, "samples_per_s"), 0),
                                 text(times(figure(result, "step_s"), 1000), 1, " ms"),
                                 evaluated(result),
                                 text(figure(result, "wait_s"), 1, " s"),
                                 text(figure(result, "group_averages"), 0),
                                 text(figure(result, "global_averages"), 0),
                                 text(figure(result, "skipped_steps"), 0),
                                 text(figure(result, "abandoned_batches"), 0),
                                 text(figure(result, "updates"), 0),
                                 text(figure(result, "samples_per_update"), 0)};
    for (const auto& name : names) row.push_back(logged_text(result, name));
    table.add(std::move(row));
  }
  return table.text() + (more == 0 ? ""
                                   : "and " + std::to_string(more) +
                                         " more logged names: `logged` in each run's result.json has them\n");
}

std::string comparison_in_words(const std::vector<Compared>& runs) {
  if (runs.empty()) return "";
  const Compared& base = runs.front();
  if (!base.result.is_object()) return base.strategy + " failed, so there is nothing to compare with.";
  const auto reached = figure(base.result, "time_to_target_s");
  std::string words =
      "Against " + base.strategy + " (" +
      (reached ? "target in " + text(reached, 1, " s") : text(figure(base.result, "samples_per_s"), 0) + " samples/s") +
      "): ";
  for (std::size_t i = 1; i < runs.size(); ++i) words += (i > 1 ? "; " : "") + words_for(runs[i], base);
  if (runs.size() == 1) words += "nothing else was run";
  return words + ".";
}

}  // namespace paceline::cli
