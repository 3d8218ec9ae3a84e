#include <algorithm>
#include <cmath>
#include <sstream>

#include "scheduler/rounds/round_state.h"

// Who is waited for, until when, and what is seen of the state from outside.

namespace paceline::scheduler {
namespace {

Duration times(double factor, Duration d) { return Duration(std::llround(factor * static_cast<double>(d.count()))); }

}  // namespace

void RoundEngine::State::fire(Version v, Instant now, Actions& out) {
  forward(options.self, v, out);
  hear(v, now);
}

void RoundEngine::State::count(Version v, const RoundPlan& plan, Instant now, Actions& out) {
  Counted& c = counted[v];
  if (++c.arrivals == 1 && plan.round(v).grace) c.first = now;
  fire_if_counted(v, plan, now, out);
}

void RoundEngine::State::fire_if_counted(Version v, const RoundPlan& plan, Instant now, Actions& out) {
  const Round round = plan.round(v);
  Counted& c = counted[v];
  const auto left = static_cast<std::int32_t>(options.node_of.size() - gone.size());
  if (v <= fired || c.arrivals < std::min(round.quorum, left)) return;
  if (round.grace && !c.fires) {
    spreads.add(now - c.first);
    c.fires = now + grace(round).value_or(Duration::zero());
    if (*c.fires > now && c.arrivals < left) return;
  } else if (round.grace && c.arrivals < left) {
    return;
  }
  fire(v, now, out);
}

void RoundEngine::State::end_grace_of_quorum(const RoundPlan& plan, Instant now, Actions& out) {
  const auto v = flight ? std::nullopt : open_version(plan);
  if (!v || fired >= *v) return;
  const auto c = counted.find(*v);
  if (c != counted.end() && c->second.fires && *c->second.fires <= now) fire(*v, now, out);
}

std::vector<Rank> RoundEngine::State::missing_at(Version v) const {
  std::vector<Rank> missing;
  for (const auto& [rank, w] : workers)
    if (is_missing(rank, v)) missing.push_back(rank);
  return missing;
}

std::optional<Duration> RoundEngine::State::grace(const Round& round) const {
  if (!round.grace) return std::nullopt;
  if (round.grace->fixed > Duration::zero()) return round.grace->fixed;
  if (round.grace->median_spreads > 0) return times(round.grace->median_spreads, spreads.get());
  const Duration median = gate_median > Duration::zero() ? gate_median : steps.get();
  if (median == Duration::zero()) return std::nullopt;  // Nothing to multiply yet: patience holds.
  return times(round.grace->median_steps, median);
}

Duration RoundEngine::State::patience(std::int64_t period) const {
  return std::max(options.patience_min,
                  times(options.patience_median_steps * static_cast<double>(period), steps.get()));
}

Instant RoundEngine::State::waited_since(const Worker& w) const { return std::max(gate_since, w.word); }

Instant RoundEngine::State::silent_since(const Worker& w) const { return std::max(waited_since(w), w.alive); }

Instant RoundEngine::State::waited_until(const Worker& w, const Round& round) const {
  const auto allowed = grace(round);
  if (!allowed) {
    const Instant until = silent_since(w) + patience();
    return options.wait_limit ? std::min(until, waited_since(w) + *options.wait_limit) : until;
  }
  const Instant end = gate_since + *allowed;
  const Duration median = steps.get();
  if (options.absent_median_steps <= 0 || median == Duration::zero()) return end;
  return std::min(end, w.word + times(options.absent_median_steps, median));
}

std::optional<Instant> RoundEngine::State::fires_without_at(const RoundPlan& plan) const {
  const auto v = open_version(plan);
  if (flight || !v || fired >= *v) return std::nullopt;
  const Trigger trigger = plan.round(*v).trigger;
  if (trigger != Trigger::initiator && trigger != Trigger::quorum) return std::nullopt;
  std::optional<Instant> first;
  for (const auto& [rank, w] : workers) {
    if (w.phase == Phase::parked && w.engaged == *v && (!first || w.word < *first)) first = w.word;
  }
  // Whoever is late may have a whole period to do.
  return first ? std::optional(*first + patience(plan.period())) : std::nullopt;
}

std::optional<Instant> RoundEngine::State::next_deadline(const RoundPlan& plan) const {
  if (flight) return std::nullopt;
  const auto without = fires_without_at(plan);
  const auto v = open_version(plan);
  if (!v) return without;
  if (fired < *v) {
    const auto c = counted.find(*v);
    const auto fires = c != counted.end() ? c->second.fires : std::nullopt;
    return without && fires ? std::min(*without, *fires) : without ? without : fires;
  }
  if (without) return without;
  const Round round = plan.round(*v);
  if (round.trigger != Trigger::all_arrived) return std::nullopt;
  std::optional<Instant> next;
  for (Rank rank : missing_at(*v)) {
    const Instant until = waited_until(workers.at(rank), round);
    // Under a grace nothing happens before the last of them is not waited for; out of patience each leaves on its own.
    next = !next ? until : grace(round) ? std::max(*next, until) : std::min(*next, until);
  }
  return next;
}

std::optional<RoundEngine::Waiting> RoundEngine::State::waiting(const RoundPlan& plan) const {
  Waiting result;
  if (flight) {
    result.version = flight->version;
    result.since = gate_since;
    for (const GroupInFlight& g : flight->groups) {
      for (Rank rank : g.members) {
        const Worker& w = workers.at(rank);
        if (w.phase == Phase::parked && w.engaged == flight->version) result.arrived.push_back(rank);
      }
    }
    return result.arrived.empty() ? std::nullopt : std::optional(result);
  }
  const auto v = open_version(plan);
  if (!v || fired < *v) return std::nullopt;
  result.version = *v;
  result.since = gate_since;
  result.missing = missing_at(*v);
  for (const auto& [rank, w] : workers) {
    if (w.phase == Phase::parked && w.engaged == *v) result.arrived.push_back(rank);
  }
  return result;
}

std::string RoundEngine::State::fingerprint() const {
  std::ostringstream s;
  s << done.value << ' ' << fired.value << ' ' << (gate ? gate->value : -9) << ' ';
  if (gate && fired >= *gate) s << '@' << gate_since.time_since_epoch().count() << '*' << gate_median.count() << ' ';
  for (const auto& [rank, w] : workers) {
    s << 'w' << rank.value << ':' << static_cast<int>(w.phase) << ',' << w.reported.value << ',' << w.engaged.value
      << ',' << w.fresh_at.value << ',' << w.executed.value << ',' << (w.enters_after ? w.enters_after->value : -9)
      << ',' << w.without.value << (w.merges ? 'm' : ' ') << (returning.contains(rank) ? 'r' : ' ')
      << w.word.time_since_epoch().count() << ',' << w.alive.time_since_epoch().count() << ' ';
  }
  if (flight) {
    s << 'f' << flight->version.value;
    for (const GroupInFlight& g : flight->groups) {
      s << '/' << g.index << ':' << static_cast<int>(g.stage);
      for (Rank r : g.members) s << 'm' << r.value;
      for (Rank r : g.fresh) s << 'f' << r.value;
    }
  }
  for (const auto& [key, nodes] : partials) {
    s << 'p' << key.first.value << '.' << key.second;
    for (NodeId n : nodes) s << ',' << n.value;
  }
  for (const auto& [v, c] : counted) {
    s << 'c' << v.value << '=' << c.arrivals;
    if (c.first != Instant{}) s << '@' << c.first.time_since_epoch().count();
    if (c.fires) s << '!' << c.fires->time_since_epoch().count();
  }
  for (const Rank rank : gone) s << 'g' << rank.value;
  for (const NodeId node : lost) s << 'l' << node.value;
  s << 'a' << told_to_finish.value;
  for (const auto& [root, v] : forwarded) s << 'r' << root.value << '=' << v.value;
  s << '~' << steps.get().count() << '~' << spreads.get().count();
  return s.str();
}

}  // namespace paceline::scheduler
