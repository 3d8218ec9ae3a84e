#include "algorithms/job/view_changes.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "runtime/base/json.h"

namespace paceline::job {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 7> kKinds{"left",    "returned",  "scale",      "drain",
                                                 "changed", "node_lost", "node_joined"};
constexpr std::int64_t kTrack = 1'000'000;  // No node has this number, which is what the other tracks go by.

}  // namespace

bool is_view_change(const json& event) {
  const auto kind = event.value("event", "");
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end() && !event.value("ended", false);
}

std::optional<double> seconds_of_view_change(const json& event) {
  const auto after = event.find("after_s");
  if (after == event.end() || !after->is_number()) return std::nullopt;
  return std::max(0.0, after->get<double>());
}

Result<void> ViewTrace::on_event(const json& event, Instant now) {
  if (failed_ || !is_view_change(event)) return {};
  if (!trace_) {
    auto trace = observe::TraceWriter::open(directory_ + "/changes.trace");
    failed_ = !trace;
    if (!trace) return tl::unexpected(trace.error());
    trace_.emplace(std::move(*trace));
    trace_->name_track(kTrack, 0, "job", "changes");
  }
  json details = json::object();
  for (const char* const name : {"worker", "node", "workers", "update", "strategy", "bytes", "samples", "text"})
    if (const auto found = event.find(name); found != event.end()) details[name] = *found;
  const Duration took = from_seconds(seconds_of_view_change(event).value_or(0));
  trace_->span(kTrack, 0, event.value("event", ""), now - took, now, json_text(details));
  return trace_->error();
}

}  // namespace paceline::job
