#include "cli/recorded/scalars.h"

#include <optional>
#include <string_view>
#include <system_error>

#include "algorithms/job/metric.h"
#include "cli/recorded/json_fields.h"
#include "runtime/base/json.h"
#include "runtime/observe/read_file.h"

namespace paceline::recorded {
namespace {

using nlohmann::json;

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
  const std::string metrics = run / "metrics.jsonl";
  if (std::error_code failed; !std::filesystem::exists(metrics, failed))
    return fail(ErrorKind::not_found, run.string() + " holds no metrics.jsonl: is it a run directory?");
  const auto text = observe::read_file(run / "configuration.json", observe::kJsonBytesMax);
  if (!text && text.error().kind != ErrorKind::not_found) return tl::unexpected(text.error());
  const auto configuration = parse_json(text.value_or(""));
  const std::string metric = job::metric_of(object_in(configuration, "options")).name;
  std::vector<Scalar> scalars;
  std::int64_t told = 0;  // The last update whose loss is known.
  PACELINE_TRY(observe::read_lines(metrics, [&](std::string_view line, bool) {
    const json event = parse_json(line);
    if (!event.is_object()) return;
    auto scalar = scalar_of(event, metric);
    if (!scalar) return;
    const bool is_loss = text_of(event, "event") == "progress";
    if (is_loss && scalar->update <= told) return;
    if (is_loss) told = scalar->update;
    scalars.push_back(std::move(*scalar));
  }));
  return scalars;
}

}  // namespace paceline::recorded
