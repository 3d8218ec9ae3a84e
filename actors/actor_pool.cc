#include "actors/actor_pool.h"

#include <algorithm>
#include <tuple>

#include "runtime/base/steady_now.h"

namespace paceline::actors {
namespace {

constexpr Duration kRest = std::chrono::seconds(1);

}  // namespace

PoolTurns::PoolTurns(std::size_t actors, std::size_t in_flight) : members_(actors), in_flight_(in_flight) {
  if (actors == 0) throw TaskError({ErrorKind::invalid, "an ActorPool of no actors: give it some"});
  if (in_flight == 0)
    throw TaskError({ErrorKind::invalid, "an ActorPool whose actors have no calls: in_flight is 1 or more"});
}

std::size_t PoolTurns::next() {
  while (true) {
    const Instant now = steady_now();
    look(now);
    if (const auto actor = free(now)) {
      members_[*actor].turn = ++turns_;
      return *actor;
    }
    std::vector<PendingResultPtr> calls;
    for (const auto& member : members_) calls.insert(calls.end(), member.calls.begin(), member.calls.end());
    (void)wait_for_some(calls, 1, std::nullopt);
  }
}

void PoolTurns::add(std::size_t actor, PendingResultPtr call) { members_[actor].calls.push_back(std::move(call)); }

void PoolTurns::look(Instant now) {
  for (auto& member : members_) {
    std::erase_if(member.calls, [&](const PendingResultPtr& call) {
      if (!call->ready()) return false;
      const auto& result = call->wait();
      const bool died = !result && result.error().kind == ErrorKind::disconnected;
      member.died = died ? std::optional(now) : std::nullopt;
      return true;
    });
  }
}

std::optional<std::size_t> PoolTurns::free(Instant now) const {
  const auto rests = [&](const Member& member) { return member.died && now < *member.died + kRest; };
  const bool all_rest = std::all_of(members_.begin(), members_.end(), rests);
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& one = members_[i];
    if (one.calls.size() >= in_flight_ || (rests(one) && !all_rest)) continue;
    if (!best ||
        std::tuple(one.calls.size(), one.turn) < std::tuple(members_[*best].calls.size(), members_[*best].turn))
      best = i;
  }
  return best;
}

}  // namespace paceline::actors
