#include "cli/recorded/scalars.h"

#include <fstream>
#include <optional>
#include <sstream>

#include "algorithms/job/metric.h"
#include "cli/recorded/json_fields.h"
#include "runtime/base/json.h"

namespace paceline::recorded {
namespace {

using nlohmann::json;

std::string text_in(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::optional<Scalar> scalar_of(const json& event, const std::string& metric) {
  const std::string kind = text_of(event, "event");
  const char* field = kind == "progress" ? "loss" : "value";
  const auto value = number(event, field), update = number(event, "update");
  if (!value || !update) return std::nullopt;
  Scalar scalar{"", -1, static_cast<std::int64_t>(*update), number(event, "clock_s").value_or(0), *value};
  if (kind == "progress" && number(event, "node").value_or(0) == 0) {
    scalar.name = "loss";
  } else if (kind == "evaluated") {
    scalar.name = metric;
  } else if (kind == "metric") {
    scalar.name = text_of(event, "name");
    scalar.worker = static_cast<std::int32_t>(number(event, "worker").value_or(-1));
  } else {
    return std::nullopt;
  }
  return scalar;
}

}  // namespace

Result<std::vector<Scalar>> scalars_of(const std::filesystem::path& run) {
  std::ifstream in(run / "metrics.jsonl", std::ios::binary);
  if (!in) return fail(ErrorKind::not_found, run.string() + " holds no metrics.jsonl: is it a run directory?");
  const auto configuration = parse_json(text_in(run / "configuration.json"));
  const std::string metric = job::metric_of(object_in(configuration, "options")).name;
  std::vector<Scalar> scalars;
  std::int64_t told = 0;  // The last update whose loss is known.
  for (std::string line; std::getline(in, line);) {
    const json event = parse_json(line);
    if (!event.is_object()) continue;
    auto scalar = scalar_of(event, metric);
    if (!scalar) continue;
    const bool is_loss = text_of(event, "event") == "progress";
    if (is_loss && scalar->update <= told) continue;
    if (is_loss) told = scalar->update;
    scalars.push_back(std::move(*scalar));
  }
  return scalars;
}

}  // namespace paceline::recorded
