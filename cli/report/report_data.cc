#include "cli/report/report_data.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "algorithms/job/metric.h"
#include "cli/report/thinning.h"
#include "cli/report/timeline.h"
#include "runtime/base/json.h"

namespace paceline::report {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// On a page, of all its runs together.
constexpr std::size_t kPoints = 12'000;
constexpr std::size_t kSlices = 24'000;
constexpr std::size_t kSpans = 18'000;
constexpr std::size_t kViews = 2'000;

struct Limits {
  std::size_t points;  // Of a curve.
  std::size_t views;
  TimelineLimits timeline;
};

Limits limits_for(const std::vector<LoadedRun>& runs) {
  std::size_t tracks = 1;
  for (const LoadedRun& run : runs) tracks += run.trace ? run.trace->tracks.size() : 0;
  const std::size_t count = std::max<std::size_t>(1, runs.size());
  return {
      std::clamp<std::size_t>(kPoints / count, 200, 1000),
      std::clamp<std::size_t>(kViews / count, 20, 200),
      {std::clamp<std::size_t>(kSlices / tracks, 40, 240), std::clamp<std::size_t>(kSpans / (3 * count), 200, 2000)}};
}

/// Six digits, which no curve shows, in fewer bytes.
json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

json curve(const std::vector<recorded::Point>& points) {
  json curve{{"clock_s", json::array()}, {"samples", json::array()}, {"value", json::array()}};
  for (const recorded::Point& point : points) {
    curve["clock_s"].push_back(rounded(point.clock_s));
    curve["samples"].push_back(std::llround(point.samples));
    curve["value"].push_back(rounded(point.value));
  }
  return curve;
}

json thinned_curve(const std::vector<recorded::Point>& points, std::size_t points_max, const char* what, json& notes) {
  const auto kept = thinned(points, points_max);
  if (kept.size() < points.size()) {
    notes.push_back(std::string(what) + " was thinned for drawing: " + std::to_string(kept.size()) + " of " +
                    std::to_string(points.size()) + " points, with the lowest and the highest of each stretch");
  }
  return curve(kept);
}

/// The first and the last of them.
json view_changes(const std::vector<recorded::ViewChange>& all, std::size_t most, json& notes) {
  json rows = json::array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all.size() > most && i == most / 2) i = all.size() - most / 2;
    const auto& [clock_s, update, event, text, took_s] = all[i];
    rows.push_back({{"clock_s", rounded(clock_s)},
                    {"update", update},
                    {"event", event},
                    {"text", text},
                    {"took_s", took_s ? rounded(*took_s) : json(nullptr)}});
  }
  if (rows.size() < all.size())
    notes.push_back("of " + std::to_string(all.size()) + " times that somebody came or went the first and the last " +
                    std::to_string(most / 2) + " are shown");
  return rows;
}

/// The strategy; with the directory's name where two runs have the same one, and a number where that is the same, too.
std::string name_for(const recorded::RunHistory& run, const std::multiset<std::string>& strategies,
                     std::set<std::string>& used) {
  const std::string directory = run.directory.filename().string();
  std::string name = run.strategy();
  if (name.empty()) name = directory;
  if (strategies.count(run.strategy()) > 1 && name != directory) name += " (" + directory + ")";
  const std::string wanted = name;
  for (int k = 2; !used.insert(name).second; ++k) name = wanted + " #" + std::to_string(k);
  return name;
}

json run_data(const LoadedRun& run, std::string name, const Limits& limits) {
  const recorded::RunHistory& history = run.history;
  json notes = history.notes;
  if (!run.trace) notes.push_back("there is no trace, so no timeline");
  json data{{"name", std::move(name)},
            {"directory", history.directory.string()},
            {"strategy", history.strategy()},
            {"workers", history.workers()},
            {"options", history.options},
            {"environment", history.environment},
            {"outcome", history.outcome},
            {"failed", history.failed},
            {"result", history.result},
            {"loss", thinned_curve(history.loss, limits.points, "the loss", notes)},
            {"metric", job::to_json(job::metric_of(history.options))},
            {"evaluations", thinned_curve(history.evaluations, limits.points, "the evaluations", notes)},
            {"logged", json::object()},
            {"program", history.program},
            {"period", thinned_curve(changes(history.period), limits.points, "the period", notes)},
            {"staleness", history.staleness}};
  data["views"] = view_changes(history.views, limits.views, notes);
  for (const auto& [what, points] : history.logged)
    data["logged"][what] = thinned_curve(points, limits.points, what.c_str(), notes);
  data["timeline"] = run.trace ? timeline(*run.trace, limits.timeline) : json(nullptr);
  data["notes"] = std::move(notes);
  return data;
}

}  // namespace

Result<std::vector<LoadedRun>> load_runs(const fs::path& directory) {
  // "runs/x/" and "." have no last name.
  std::error_code failed;
  const auto canonical = fs::canonical(directory, failed);
  std::vector<LoadedRun> runs;
  for (const fs::path& run : recorded::runs_in(failed ? directory : canonical)) {
    auto history = recorded::read_run(run);
    if (!history) return tl::unexpected(history.error());
    auto trace = recorded::read_trace(run);
    if (!trace) return tl::unexpected(trace.error());
    runs.push_back({std::move(*history), std::move(*trace)});
  }
  return runs;
}

json report_data(const std::vector<LoadedRun>& runs) {
  const Limits limits = limits_for(runs);
  std::multiset<std::string> strategies;
  for (const LoadedRun& run : runs) strategies.insert(run.history.strategy());
  std::set<std::string> used;
  json data = json::array();
  for (const LoadedRun& run : runs) data.push_back(run_data(run, name_for(run.history, strategies, used), limits));
  return {{"runs", std::move(data)}};
}

}  // namespace paceline::report
