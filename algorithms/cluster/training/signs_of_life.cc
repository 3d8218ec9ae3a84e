#include "algorithms/cluster/training/signs_of_life.h"

#include <utility>

namespace paceline::cluster {

void SignsOfLife::heard(Rank rank, Instant now) {
  if (const auto it = last_.find(rank); it != last_.end()) it->second = now;
}

void SignsOfLife::answered(Rank rank, Instant now) {
  asked_.erase(rank);
  heard(rank, now);
}

bool SignsOfLife::is_alive(Rank rank, Instant now) const {
  const auto it = last_.find(rank);
  return it != last_.end() && now - it->second < kAskAfter + kAnswerWithin;
}

SignsOfLife::Look SignsOfLife::look(Instant now) {
  Look found;
  const Instant before = std::exchange(looked_, now);
  const bool was_away = before != Instant{} && now - before >= kAway;
  for (auto& [rank, last] : last_) {
    if (now - last >= kAskAfter && asked_.insert(rank).second) found.ask.push_back(rank);
    if (!was_away) continue;
    last = now;
    found.unheard.push_back(rank);
  }
  return found;
}

}  // namespace paceline::cluster
