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
  std::vector<Message> messages;
  while (!kept_.empty() && kept_.begin()->first <= newest_) {
    const auto first = kept_.extract(kept_.begin());
    count_ -= first.mapped().size();
    if (first.key() == job) messages = std::move(first.mapped());
  }
  return messages;
}

}  // namespace paceline::cluster
