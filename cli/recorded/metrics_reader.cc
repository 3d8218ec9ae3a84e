#include "cli/recorded/metrics_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "algorithms/job/view_changes.h"
#include "cli/recorded/json_fields.h"
#include "runtime/base/json.h"

namespace paceline::recorded {

namespace {

using nlohmann::json;

/// Of a file that anybody may have changed: what does not fit is left out.
job::JobRecord fresh_record(const json& options) {
  job::Options known;
  known.strategy = text_of(options, "strategy");
  known.metric = job::metric_of(options);
  known.target = job::target_of(options);
  const auto workers = static_cast<std::size_t>(std::clamp(number(options, "workers").value_or(0), 0.0, 4096.0));
  return {known, std::vector<std::int32_t>(workers, job::JobRecord::kNotKnown)};
}

}  // namespace

MetricsReader::MetricsReader(json options) : options_(std::move(options)), record_(fresh_record(options_)) {}

void MetricsReader::begin() {
  const std::size_t runs = runs_ + 1;
  const std::size_t unreadable = unreadable_;
  *this = MetricsReader(std::move(options_));
  runs_ = runs;
  unreadable_ = unreadable;
}

void MetricsReader::on_line(std::string_view line, bool whole) {
  if (line.empty()) return;
  const json event = parse_json(line);
  if (!event.is_object()) {
    if (whole) ++unreadable_;
    return;
  }
  try {
    if (ended_) begin();
    on_event(event);
  } catch (const json::exception&) {  // A field of another type than ours.
    ++unreadable_;
  }
}

void MetricsReader::on_event(const json& event) {
  record_.on_event(event);
  const std::string kind = event.value("event", "");
  if (job::is_view_change(event))
    views_.push_back(
        {record_.clock_s(), record_.update(), kind, event.value("text", ""), job::seconds_of_view_change(event)});
  if (kind == "started") {
    first_update_ = event.value("first", first_update_);
  } else if (kind == "progress" || kind == "closed") {
    on_progress(event);
  } else if (kind == "evaluated") {
    if (event.contains("value") && event["value"].is_number())  // Else the script has no metric.
      evaluations_.push_back({event.value("clock_s", 0.0), 0, event["value"].get<double>()});
  } else if (kind == "metric") {
    on_logged(event);
  } else if (kind == "left") {
    left_[event.value("worker", -1)] = event.value("text", "");
  } else if (kind == "result") {
    ended_ = true;
  }
}

void MetricsReader::on_progress(const json& event) {
  const auto node = event.value("node", 0);
  if (event.contains("counters") && event["counters"].contains("staleness"))
    staleness_[node] = event["counters"]["staleness"].get<std::vector<std::int64_t>>();
  const Point now{record_.clock_s(), static_cast<double>(record_.samples()), 0};
  if (samples_.empty() || now.clock_s > samples_.back().clock_s) {
    samples_.push_back(now);
  } else {
    samples_.back().samples = now.samples;
  }
  if (node != 0 || !event.contains("loss") || record_.update() <= std::max(first_update_, last_update_)) return;
  last_update_ = record_.update();
  loss_.push_back({now.clock_s, now.samples, record_.loss()});
  period_.push_back({now.clock_s, now.samples, static_cast<double>(record_.period())});
}

/// What one worker says moves the average: of the same update only the last one is kept.
void MetricsReader::on_logged(const json& event) {
  const auto name = event.value("name", "");
  const auto update = event.value("update", std::int64_t{0});
  for (const auto& [known, value] : record_.logged()) {
    if (known != name) continue;
    auto& [points, last] = logged_[name];
    if (points.empty() || update > last) points.push_back({event.value("clock_s", record_.clock_s()), 0, 0});
    last = std::max(last, update);
    points.back().value = value;
  }
}

/// Between two progress lines, as if the workers had gone on evenly.
double MetricsReader::samples_at(double clock_s) const {
  const auto after = std::lower_bound(samples_.begin(), samples_.end(), clock_s,
                                      [](const Point& point, double at) { return point.clock_s < at; });
  if (after == samples_.end()) return samples_.empty() ? 0 : samples_.back().samples;
  const Point before = after == samples_.begin() ? Point{} : *std::prev(after);
  const double span = after->clock_s - before.clock_s;
  const double part = span > 0 ? (clock_s - before.clock_s) / span : 1;
  return before.samples + part * (after->samples - before.samples);
}

void MetricsReader::finish(RunHistory& history) {
  for (Point& point : evaluations_) point.samples = samples_at(point.clock_s);
  for (const auto& [node, counts] : staleness_) {
    history.staleness.resize(std::max(history.staleness.size(), counts.size()));
    for (std::size_t late = 0; late < counts.size(); ++late) history.staleness[late] += counts[late];
  }
  for (const auto& [rank, text] : left_)
    history.notes.push_back("worker " + std::to_string(rank) + " left" + (text.empty() ? "" : ": " + text));
  if (runs_ > 1)
    history.notes.push_back("metrics.jsonl holds " + std::to_string(runs_) + " runs, of which this is the last");
  if (unreadable_ > 0) history.notes.push_back(std::to_string(unreadable_) + " lines of metrics.jsonl are no events");
  history.first_update = first_update_;
  for (const auto& [rank, worker] : record_.workers()) history.samples[rank] = worker.samples;
  for (auto& [name, curve] : logged_) {
    for (Point& point : curve.points) point.samples = samples_at(point.clock_s);
    history.logged[name] = std::move(curve.points);
  }
  history.loss = std::move(loss_);
  history.evaluations = std::move(evaluations_);
  history.period = std::move(period_);
  history.views = std::move(views_);
}

}  // namespace paceline::recorded
