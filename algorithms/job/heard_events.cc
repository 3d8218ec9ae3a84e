#include "algorithms/job/heard_events.h"

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

nlohmann::json HeardEvents::list() const {
  auto list = nlohmann::json::array();
  for (const auto& [node, number] : last_) list.push_back({node.value, number});
  return list;
}

}  // namespace paceline::job
