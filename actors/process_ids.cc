#include "actors/process_ids.h"

#include <charconv>

namespace paceline::actors {

ProcessId ProcessIds::join(const std::string& peer) {
  const auto [it, is_new] = numbers_.try_emplace(peer);
  if (is_new) {
    do last_ = last_ + 1 < kProcessesMax ? last_ + 1 : 1;
    while (!used_.insert(last_).second);
    it->second = last_;
  }
  return process_id(node_, it->second);
}

void ProcessIds::leave(const std::string& peer) {
  const auto it = numbers_.find(peer);
  if (it == numbers_.end()) return;
  used_.erase(it->second);
  numbers_.erase(it);
}

std::optional<std::string> ProcessIds::peer_of(ProcessId process) const {
  for (const auto& [peer, number] : numbers_)
    if (process_id(node_, number) == process) return peer;
  return std::nullopt;
}

std::string worker_peer(WorkerId worker) { return "worker/" + to_string(worker); }

std::optional<WorkerId> worker_named(std::string_view peer) {
  constexpr std::string_view kPrefix = "worker/";
  if (!peer.starts_with(kPrefix)) return std::nullopt;
  std::uint64_t id = 0;
  std::from_chars(peer.data() + kPrefix.size(), peer.data() + peer.size(), id);
  return WorkerId(id);
}

}  // namespace paceline::actors
