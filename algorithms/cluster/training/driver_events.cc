#include "algorithms/cluster/training/driver_events.h"

namespace paceline::cluster {

void DriverEvents::tell(const nlohmann::json& event) {
  kept_.push_back({++told_, json_text(event), 0});
  bytes_ += kept_.back().json.size();
  while (kept_.size() > kEventsMax || (bytes_ > kBytesMax && kept_.size() > 1)) {
    bytes_ -= kept_.front().json.size();
    kept_.pop_front();
  }
  send_from(unsent_);
}

void DriverEvents::on_driven(JobDriver driver, std::uint64_t heard) {
  if (driver.moves <= driver_.moves) return;
  driver_ = std::move(driver);
  send_from(heard + 1);
}

void DriverEvents::send_from(std::uint64_t number) {
  unsent_ = number;
  for (Event& event : kept_) {
    if (event.number < unsent_) continue;
    event.oldest = kept_.front().number;
    if (!send_(driver_, event)) return;
    unsent_ = event.number + 1;
  }
}

}  // namespace paceline::cluster
