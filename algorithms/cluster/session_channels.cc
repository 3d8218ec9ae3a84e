#include "algorithms/cluster/session_channels.h"

#include <limits>
#include <utility>

namespace paceline::cluster {
namespace {

constexpr std::uint64_t kRingBytes = 64 << 10;  // Some hundred arrivals.
constexpr std::size_t kTurn = 64;               // Messages of one worker before the others have their turn.

}  // namespace

SessionChannels::~SessionChannels() {
  for (const auto& [worker, channel] : channels_) loop_.forget(channel->descriptor());
}

Result<void> SessionChannels::open(WorkerId worker,
                                   const std::function<void(const std::vector<process::BorrowedFd>&)>& send) {
  close(worker);
  auto made = channel::RingChannel::create({.to_maker = kRingBytes, .from_maker = 1});
  if (!made) return tl::unexpected(made.error());
  PACELINE_TRY(loop_.watch((*made)->descriptor(), [this, worker] { hear(worker, kTurn); }));
  send((*made)->descriptors());
  (*made)->are_sent();
  channels_.insert_or_assign(worker, *std::move(made));
  hear(worker, kTurn);  // Nothing yet: from here on its bell rings.
  return {};
}

void SessionChannels::close(WorkerId worker) {
  hear(worker, std::numeric_limits<std::size_t>::max());
  const auto it = channels_.find(worker);
  if (it == channels_.end()) return;
  loop_.forget(it->second->descriptor());
  channels_.erase(it);
}

/// While messages are left the bell stays readable, so that the loop comes back here.
void SessionChannels::hear(WorkerId worker, std::size_t at_most) {
  for (std::size_t heard = 0; heard < at_most; ++heard) {
    const auto it = channels_.find(worker);  // Anew: what is heard may close it.
    if (it == channels_.end()) return;
    const auto came = it->second->receive(message_, Duration::zero());
    if (!came) {
      loop_.forget(it->second->descriptor());
      channels_.erase(it);
      return listener_.broken(worker, came.error());
    }
    if (!*came) return;
    listener_.message(worker, std::move(message_.front()));
  }
}

}  // namespace paceline::cluster
