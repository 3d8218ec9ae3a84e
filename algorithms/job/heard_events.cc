#include "algorithms/job/heard_events.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/base/json.h"

namespace paceline::job {

HeardEvents::Event HeardEvents::on_event(NodeId from, std::uint64_t number, std::uint64_t oldest) {
  if (number == 0) return Event::next;
  auto& last = last_[from];
  if (number <= last) return Event::known;
  if (number > last + 1 && oldest <= last + 1) return Event::missed;
  last = number;
  return Event::next;
}

bool HeardEvents::is_said_again(const nlohmann::json& event) {
  const auto kind = event.value("event", "");
  if (kind == "evaluated" || kind == "changed") {
    const auto update = event.value("update", std::int64_t{0});
    std::int64_t& last = kind == "evaluated" ? evaluated_ : changed_;
    return update <= std::exchange(last, std::max(update, last));
  }
  return kind == "stopping" && std::exchange(stopping_, event.value("text", "")) == event.value("text", "");
}

nlohmann::json HeardEvents::list() const {
  auto list = nlohmann::json::array();
  for (const auto& [node, number] : last_) list.push_back({node.value, number});
  return list;
}

}  // namespace paceline::job
