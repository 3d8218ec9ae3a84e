#include "algorithms/cluster/training/early_messages.h"

#include <algorithm>
#include <utility>

namespace paceline::cluster {

bool EarlyMessages::keep(JobId job, const transport::Peer& from, const wire::Envelope::Reader& envelope,
                         transport::Frame bulk) {
  if (count_ == kMax) return false;
  kept_[job].push_back({from, std::make_unique<wire::Message>(envelope), std::move(bulk)});
  ++count_;
  return true;
}

std::vector<EarlyMessages::Message> EarlyMessages::open(JobId job) {
  newest_ = std::max(newest_, job);
  auto messages = take(job);
  while (!kept_.empty() && kept_.begin()->first <= newest_) (void)take(kept_.begin()->first);
  return messages;
}

std::vector<EarlyMessages::Message> EarlyMessages::take_all() {
  std::vector<Message> all;
  while (!kept_.empty())
    for (auto& message : take(kept_.begin()->first)) all.push_back(std::move(message));
  return all;
}

std::vector<EarlyMessages::Message> EarlyMessages::take(JobId job) {
  const auto kept = kept_.extract(job);
  if (kept.empty()) return {};
  count_ -= kept.mapped().size();
  return std::move(kept.mapped());
}

}  // namespace paceline::cluster
