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
  while (kept_.size() > kEventsMax || (bytes_ > kBytesMax && kept_.size() > 1)) forget(kept_.begin());
  forget_old_progress();
  send_from(unsent_);
}

void DriverEvents::forget(std::deque<Kept>::iterator which) {
  bytes_ -= which->frame.size();
  progress_ -= which->is_progress ? 1 : 0;
  whole_from_ = std::max(whole_from_, which->number + 1);
  kept_.erase(which);
}

void DriverEvents::forget_old_progress() {
  while (progress_ > kProgressMax) {
    const auto oldest = std::find_if(kept_.begin(), kept_.end(), [](const Kept& kept) { return kept.is_progress; });
    if (oldest->number >= unsent_) return;
    forget(oldest);
  }
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
    const auto next = std::lower_bound(kept_.begin(), kept_.end(), unsent_,
                                       [](const Kept& kept, std::uint64_t from) { return kept.number < from; });
    const std::uint64_t its_number = next->number;
    unsent_ = its_number + 1;
    if (send(*next)) continue;
    unsent_ = std::min(unsent_, its_number);
    break;
  }
}

bool DriverEvents::send(const Kept& kept) {
  const auto written = wire::Received::parse(kept.frame);
  if (!written) return true;  // Nobody could read it.
  wire::Message message(written->root());
  auto event = message.root().getJobEvent();
  event.setOldest(std::min(kept.number, whole_from_));
  event.setTo(driver_.peer);
  return send_(driver_, message);
}

}  // namespace paceline::cluster
