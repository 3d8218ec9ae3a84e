#include "algorithms/job/sample_ledger.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace paceline::job {
namespace {

using nlohmann::json;

constexpr std::int32_t kNeverBack = std::numeric_limits<std::int32_t>::max();
constexpr std::array kCounted{"committed", "abandoned", "skipped", "late", "lost", "twice"};

}  // namespace

void SampleLedger::on_event(const json& event) {
  const auto kind = event.value("event", "");
  if (kind == "node_lost") lost_[event.value("node", 0)] = kNeverBack;
  if (kind == "node_joined") lost_[event.value("node", 0)] = event.value("leg", 0);
  if (kind == "ledger") return read(event, true);
  const auto ledger = event.find("ledger");
  if ((kind != "progress" && kind != "closed") || ledger == event.end()) return;
  const std::pair by{ledger->value("leg", 0), ledger->value("node", 0)};
  for (auto& [epoch, said] : epochs_)
    if (const auto row = said.find(by); row != said.end() && !row->second.closed) said.erase(row);
  read(*ledger, false);
}

void SampleLedger::read(const json& ledger, bool closed) {
  const std::pair by{ledger.value("leg", 0), ledger.value("node", 0)};
  nodes_.insert(by.second);
  for (const auto& each : ledger.value("epochs", json::array())) {
    Row& row = epochs_[each.value("epoch", std::int64_t{0})][by];
    if (row.closed && !closed) continue;
    row.closed = closed;
    for (const char* const what : kCounted) row.samples[what] = each.value(what, std::int64_t{0});
    row.tail = each.value("tail", std::int64_t{0});
    row.all = each.value("samples", std::int64_t{0});
  }
}

json SampleLedger::rows() const {
  json rows = json::array();
  for (const auto& [epoch, said] : epochs_) {
    if (said.empty()) continue;
    std::map<std::string, std::int64_t> sums;
    for (const auto& [by, row] : said)
      for (const auto& [what, samples] : row.samples) sums[what] += samples;
    std::int64_t known = sums["committed"];
    for (const char* const what : kUnused) known += sums[what];
    // What the first leg left of it was dealt in the next one.
    const std::int64_t all = said.begin()->second.all, tail = said.rbegin()->second.tail;
    const std::int32_t leg = said.rbegin()->first.first;
    const bool is_over = std::all_of(nodes_.begin(), nodes_.end(), [&, &of = said](std::int32_t node) {
      const auto row = of.find({leg, node});
      const auto lost = lost_.find(node);
      return (lost != lost_.end() && leg < lost->second) || (row != of.end() && row->second.closed);
    });
    if (all > 0 && is_over && !lost_.empty()) sums["lost"] += std::max<std::int64_t>(0, all - tail - known);
    json row{{"epoch", epoch}, {"samples", all > 0 ? all : known}, {"tail", tail}};
    for (const char* const what : kCounted) row[what] = sums[what];
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace paceline::job
