#include "algorithms/cluster/training/logged_values.h"

#include <utility>

namespace paceline::cluster {
namespace {

using nlohmann::json;

void take(std::map<std::string, json>& newest, const json& entry) {
  if (!entry.is_object()) return;
  const auto [it, is_new] = newest.try_emplace(entry.value("name", ""), entry);
  if (!is_new && entry.value("update", std::int64_t{0}) > it->second.value("update", std::int64_t{0}))
    it->second = entry;
}

json list_of(const std::map<std::string, json>& newest) {
  json list = json::array();
  for (const auto& [name, entry] : newest) list.push_back(entry);
  return list;
}

}  // namespace

void LoggedValues::on_value(const std::string& name, Rank worker, std::int64_t update, double clock_s, double value) {
  const auto known = newest_.find(name);
  if (known == newest_.end() && newest_.size() >= kNamesMax) return;
  if (known != newest_.end() && known->second.value("update", std::int64_t{0}) > update) return;
  newest_[name] = {
      {"name", name}, {"worker", worker.value}, {"update", update}, {"clock_s", clock_s}, {"value", value}};
}

json LoggedValues::list() const { return list_of(newest_); }

json LoggedValues::newest_of(const json& one, const json& other) {
  std::map<std::string, json> newest;
  for (const json* list : {&one, &other})
    if (list->is_array())
      for (const json& entry : *list) take(newest, entry);
  return list_of(newest);
}

}  // namespace paceline::cluster
