#include "algorithms/cluster/training/driver_events.h"

#include <algorithm>

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
  if (is_sending_) return;  // What cannot be sent may be told of in turn: that follows.
  is_sending_ = true;
  while (unsent_ <= told_) {
    const std::uint64_t oldest = kept_.front().number;
    Event event = kept_[unsent_ > oldest ? unsent_ - oldest : 0];
    event.oldest = oldest;
    unsent_ = event.number + 1;
    if (send_(driver_, event)) continue;
    unsent_ = std::min(unsent_, event.number);
    break;
  }
  is_sending_ = false;
}

}  // namespace paceline::cluster
