#include <algorithm>

#include "scheduler/rounds/round_state.h"

// A worker that has left, and has another process, comes back.

namespace paceline::scheduler {
namespace {

bool waits(Lateness late) { return late == Lateness::waits || late == Lateness::finishes; }

}  // namespace

bool RoundEngine::State::models_agree(const RoundPlan& plan, Version open) const {
  return waits(lateness) && waits(plan.round(open).late);
}

std::optional<Version> RoundEngine::State::admission(const RoundPlan& plan, Version open) const {
  for (Version v = open; v <= options.last; v = plan.next_round(v.next()))
    if (plan.round(v).kind == Round::Kind::sync) return v > fired ? std::optional(v) : std::nullopt;
  return std::nullopt;
}

void RoundEngine::State::admit_returned(const RoundPlan& plan, Instant now, Actions& out) {
  if (flight || returning.empty()) return;
  const auto open = open_version(plan);
  // Where the job has ended its state is to be the last one.
  const bool exactly = !open || models_agree(plan, *open);
  const auto after = !open ? std::optional(done) : exactly ? admission(plan, *open) : std::nullopt;
  if (exactly && !after) return;
  // Where updates are abandoned only the first one arrives, and nobody is waited for: what it has done counts at once.
  const bool abandons = !exactly && (plan.round(*open).late == Lateness::abandons || lateness == Lateness::abandons);
  std::erase_if(returning, [&](Rank rank) {
    Worker& w = workers.at(rank);
    if (w.merges) return false;
    const Version begins_after = after.value_or(done);
    w = Worker{.rank = rank,
               .phase = abandons ? Phase::computing : Phase::entering,
               .reported = begins_after,
               .engaged = begins_after,
               .fresh_at = begins_after,
               .executed = done,
               .enters_after = after,
               .word = now,
               .alive = now};
    out.push_back(Admit{rank, after, !exactly && !abandons});
    return true;
  });
}

void RoundEngine::State::come_in(Worker& w, const RoundPlan& plan, Actions& out) {
  w.phase = Phase::computing;
  w.without = flight ? flight->version : w.executed;
  if (!plan.asks_who_is_left()) return;
  gone.erase(w.rank);
  for (const NodeId to : agents)
    if (to != options.self && !lost.contains(to)) out.push_back(Gone{.to = to, .rank = w.rank, .back = true});
}

bool RoundEngine::State::pass_by(Worker& w, Version t, const RoundPlan& plan, Instant now, Actions& out) {
  if (t > w.without || plan.round(t).payload == Payload::gradients) return false;
  if (flight && flight->version == w.without) {
    w.phase = Phase::passing;
  } else {
    go_by(w, plan, now, out);
  }
  return true;
}

/// It goes on with its own model; at the end it lacks the others'.
void RoundEngine::State::go_by(Worker& w, const RoundPlan& plan, Instant now, Actions& out) {
  const Outcome outcome{.fresh = false, .averaged = false, .skipped = w.without.value - w.reported.value};
  release(w, w.reported, w.without.next(), outcome, plan, now, out);
}

void RoundEngine::State::let_in(const RoundPlan& plan, Instant now, Actions& out) {
  for (auto& [rank, w] : workers) {
    if (w.phase == Phase::passing && done >= w.without) go_by(w, plan, now, out);
    if (w.phase != Phase::entering || !w.enters_after || done < *w.enters_after) continue;
    come_in(w, plan, out);
    w.word = w.alive = now;
  }
  admit_returned(plan, now, out);
}

}  // namespace paceline::scheduler
