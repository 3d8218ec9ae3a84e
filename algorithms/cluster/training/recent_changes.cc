#include "algorithms/cluster/training/recent_changes.h"

#include <algorithm>
#include <cmath>

#include "algorithms/job/job_event_wire.h"
#include "algorithms/job/view_changes.h"

namespace paceline::cluster {
namespace {

using nlohmann::json;

constexpr double kSameWithinS = 10;  // That two nodes tell of, each when it hears of it.

bool are_same(const json& one, const json& other) {
  const auto is_equal = [&](const char* name) { return one.value(name, json()) == other.value(name, json()); };
  return is_equal("event") && is_equal("worker") && is_equal("update") &&
         (is_equal("node") || one.value("event", "") == "changed") &&
         std::abs(one.value("ago_s", 0.0) - other.value("ago_s", 0.0)) < kSameWithinS;
}

}  // namespace

void RecentChanges::on_event(const wire::JobEvent::Reader& event, Instant now) {
  if (event.isProgress() || event.isMetric()) return;  // Of which there are many.
  json change = job::to_json(event);
  if (!job::is_view_change(change)) return;
  for (const char* const of_the_message : {"job", "number", "oldest", "to"}) change.erase(of_the_message);
  changes_.emplace_back(now, std::move(change));
  if (changes_.size() > kChangesMax) changes_.pop_front();
}

json RecentChanges::list(Instant now) const {
  json list = json::array();
  for (const auto& [at, change] : changes_) {
    list.push_back(change);
    list.back()["ago_s"] = seconds(now - at);
  }
  return list;
}

json RecentChanges::of_both(const json& one, const json& other) {
  json both = json::array();
  for (const json* const list : {&one, &other}) {
    if (!list->is_array()) continue;
    const std::size_t known = both.size();
    for (const json& change : *list)
      if (change.is_object() && std::none_of(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(known),
                                             [&](const json& earlier) { return are_same(earlier, change); }))
        both.push_back(change);
  }
  std::stable_sort(both.begin(), both.end(),
                   [](const json& a, const json& b) { return a.value("ago_s", 0.0) > b.value("ago_s", 0.0); });
  if (both.size() > kChangesMax) both.erase(both.begin(), both.end() - kChangesMax);
  return both;
}

}  // namespace paceline::cluster
