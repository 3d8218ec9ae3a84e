#include "algorithms/cluster/training/driver_events.h"

#include <algorithm>
#include <memory>

namespace paceline::cluster {

void DriverEvents::tell(const Write& write) {
  wire::Message message;
  auto event = message.root().initJobEvent();
  event.setJob(job_.value);
  event.setNode(self_.value);
  event.setNumber(told_ + 1);
  write(event);
  kept_.push_back({told_ + 1, event.isProgress(), message.to_frame()});
  ++told_;
  bytes_ += kept_.back().frame.size();
  progress_ += kept_.back().is_progress ? 1 : 0;
  while (kept_.size() > kEventsMax || (bytes_ > kBytesMax && kept_.size() > 1)) forget_first();
  while (progress_ > kProgressMax && kept_.front().number < unsent_) forget_first();
  send_from(unsent_);
}

void DriverEvents::forget_first() {
  bytes_ -= kept_.front().frame.size();
  progress_ -= kept_.front().is_progress ? 1 : 0;
  kept_.pop_front();
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
  const std::shared_ptr<void> sending(nullptr, [this](void*) { is_sending_ = false; });  // Whatever is thrown.
  while (!kept_.empty() && unsent_ <= told_) {
    const std::uint64_t oldest = kept_.front().number;
    const Kept& next = kept_[unsent_ > oldest ? unsent_ - oldest : 0];
    const std::uint64_t its_number = next.number;
    unsent_ = its_number + 1;
    if (send(next)) continue;
    unsent_ = std::min(unsent_, its_number);
    break;
  }
}

bool DriverEvents::send(const Kept& kept) {
  const auto written = wire::Received::parse(kept.frame);
  if (!written) return true;  // Nobody could read it.
  wire::Message message(written->root());
  auto event = message.root().getJobEvent();
  event.setOldest(kept_.front().number);
  event.setTo(driver_.peer);
  return send_(driver_, message);
}

}  // namespace paceline::cluster
