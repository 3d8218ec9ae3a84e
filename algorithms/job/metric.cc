#include "algorithms/job/metric.h"

#include "runtime/base/json.h"
#include "runtime/observe/format.h"

namespace paceline::job {

Metric metric_of(const nlohmann::json& options) {
  Metric metric;
  const auto given = options.find("metric");
  if (given == options.end() || !given->is_object()) return metric;
  metric.name = given->value("name", metric.name);
  metric.unit = given->value("unit", metric.unit);
  if (given->value("direction", "maximise") == "minimise") metric.direction = Direction::minimise;
  return metric;
}

std::optional<double> target_of(const nlohmann::json& options) {
  const auto target = options.find("target");
  return target != options.end() && target->is_number() ? std::optional(target->get<double>()) : std::nullopt;
}

nlohmann::json to_json(const Metric& metric) {
  return {{"name", metric.name},
          {"direction", metric.direction == Direction::minimise ? "minimise" : "maximise"},
          {"unit", in_percent(metric) ? "%" : metric.unit}};
}

bool in_percent(const Metric& metric) {
  return metric.unit == "%" || (metric.unit.empty() && metric.name == "accuracy");
}

std::string text(const Metric& metric, double value) {
  if (in_percent(metric)) return observe::format("%.1f %%", 100 * value);
  return observe::format("%.4g", value) + (metric.unit.empty() ? "" : " " + metric.unit);
}

bool is_better(const Metric& metric, double value, double than) {
  return metric.direction == Direction::minimise ? value < than : value > than;
}

bool reaches(const Metric& metric, double value, double target) {
  return value == target || is_better(metric, value, target);
}

}  // namespace paceline::job
