#include "scheduler/mixing/batch_coordinator.h"

#include <utility>

namespace paceline::scheduler {
namespace {

constexpr std::size_t kUpdatesApart = 256;  // More than two agents' workers can be, with the way between neighbours.

}  // namespace

/// Who is held longer may be too late for its next update: so the record has holds.
BatchCoordinator::BatchCoordinator(Workplace& work, const Options& options, BatchEngine::Options batches)
    : Coordinator(work),
      pace_(work, *this, {.records_holds = true}),
      neighbours_(work, pace_, *this, {.plan = options.plan}),
      mixing_(work, pace_, neighbours_, options),
      batches_(batches),
      most_(batches.batches) {}

void BatchCoordinator::on_batch(Rank rank, Version t, std::int32_t bodies, Duration each, Instant now) {
  if (bodies < 0 || bodies > most_ || (!work_.windows.living(rank) && !work_.chronicle.replays())) return;
  if (each > Duration::zero()) batches_.on_pace(rank, each);
  // Of an update that its agent went on without, nothing counts.
  const std::int32_t counted = work_.chronicle.replays() || batches_.computing(rank) == t ? bodies : 0;
  if (work_.chronicle.replays()) {
    const auto* then = work_.chronicle.replay().next_contribution(rank);
    if (then && (then->iteration != t || then->bodies != bodies))
      return work_.chronicle.lose_way("worker " + to_string(rank) + " did " + std::to_string(bodies) +
                                      " mini-batches of update " + to_string(t) +
                                      ", which it did not in the run that is replayed");
  }
  work_.chronicle.hear(
      {.kind = Decision::Kind::batched, .rank = rank, .version = t, .contributions = {{rank, t, counted}}}, now);
}

void BatchCoordinator::step(const Decision& d) {
  const Instant now = work_.now();
  switch (d.kind) {
    case Decision::Kind::batched:
      if (!d.contributions.empty()) reported(d.rank, d.version, d.contributions.front().bodies, now);
      return pass_over(now);
    case Decision::Kind::passed_over: return settle(d.rank, d.version, 0, now);
    case Decision::Kind::activated: act(batches_.on_signal(d.version, now), now); return pass_over(now);
    case Decision::Kind::partial:
      if (const auto counts = counts_.extract({d.node, d.version})) {
        told_[d.version][d.node] = counts.mapped();
        if (told_.size() > kUpdatesApart) told_.erase(told_.begin());
        act(batches_.on_counts(d.node, d.version, counts.mapped()), now);
      }
      return;
    case Decision::Kind::arrived:
      waiting_.insert(d.rank);
      if (d.version >= work_.job.first) return mixing_.on_arrival(d.rank, d.version, d.took, now);
      return mixing_.has(d.rank) ? void() : mixing_.on_start(d.rank, Version{work_.job.first.value - 1}, now);
    default: return neighbours_.step(d);
  }
}

void BatchCoordinator::reported(Rank rank, Version t, std::int32_t bodies, Instant now) {
  if (!work_.windows.living(rank)) return;
  waiting_.insert(rank);
  const auto at = batches_.computing(rank);
  if (at == t) return settle(rank, t, bodies, now);
  // It was stood in for, and goes on with the update that is current, or with the next one once that is mixed.
  if (at && waiting_.erase(rank) > 0) mixing_.hand_over(rank, Version{at->value - 1}, now);
}

void BatchCoordinator::settle(Rank rank, Version v, std::int32_t bodies, Instant now) {
  work_.counters.abandoned_bodies += most_ - bodies;
  act(batches_.on_done(rank, v, bodies, now), now);
}

bool BatchCoordinator::lets_go(Rank rank, Version own, Instant now) {
  const Version next = own.next();
  batches_.on_begun(rank, next, now);
  if (batches_.is_too_late_for(next)) {
    settle(rank, next, 0, now);
  } else if (waiting_.erase(rank) > 0) {  // Else it will report.
    if (batches_.is_over(next)) end_batches_of(*work_.windows.living(rank), next);
    mixing_.hand_over(rank, own, now);
  }
  return false;
}

void BatchCoordinator::look(Instant now) {
  neighbours_.look(now);
  pass_over(now);
  // Nobody waits for a mixing yet, so that no neighbour complains.
  for (const auto& [rank, v, since] : batches_.awaited())
    if (!pace_.means.is_evaluating(rank)) pace_.leave_if_awaited_too_long(rank, v, since, now);
}

/// Under way with its first mini-batch of v, or with another update.
bool BatchCoordinator::has_done_nothing(Rank rank, Version v) {
  const Member* const member = work_.windows.living(rank);
  if (!member) return false;
  const auto& progress = member->window.progress();
  return progress.step.load(std::memory_order_acquire) != v.value ||
         progress.bodies.load(std::memory_order_acquire) == 0;
}

/// Those that have not answered a signal in time, or would only have to answer that they have nothing.
void BatchCoordinator::pass_over(Instant now) {
  if (work_.chronicle.replays()) return;
  for (const auto& [rank, v, until] : batches_.unanswered())
    if (until <= now || has_done_nothing(rank, v))
      work_.chronicle.hear({.kind = Decision::Kind::passed_over, .rank = rank, .version = v}, now);
}

std::optional<Instant> BatchCoordinator::core_deadline() const {
  auto next = earlier(neighbours_.core_deadline(), batches_.next_deadline());
  for (const auto& [rank, v, since] : batches_.awaited())
    if (!pace_.means.is_evaluating(rank)) next = earlier(next, pace_.awaited_until(rank, since));
  return next;
}

void BatchCoordinator::on_peer_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                       Instant now) {
  if (!message.isBatch()) return neighbours_.on_message(from, message, std::move(bulk), now);
  const Version v{message.getBatch().getVersion()};
  const auto bodies = message.getBatch().getBodies();
  if (bodies >= 0) {
    const auto of = work_.view.giver(from, message.getBatch().getOf());
    const auto told = told_.find(v);
    if (!of || (told != told_.end() && told->second.contains(*of))) return;
    counts_[{*of, v}] = bodies;
    work_.chronicle.hear({.kind = Decision::Kind::partial, .node = *of, .version = v, .at = now}, now);
  } else if (!batches_.is_over(v)) {
    work_.chronicle.hear({.kind = Decision::Kind::activated, .node = from, .version = v, .at = now}, now);
  }
}

void BatchCoordinator::leave(Rank rank, Instant now) {
  waiting_.erase(rank);
  act(batches_.on_gone(rank), now);
  neighbours_.leave(rank, now);
}

// Actions of the core

void BatchCoordinator::act(const BatchEngine::Actions& actions, Instant now) {
  for (const auto& action : actions) std::visit([&](const auto& a) { carry_out(a, now); }, action);
}

/// In a replay a worker knows by itself.
void BatchCoordinator::end_batches_of(Member& member, Version v) {
  if (!work_.chronicle.replays()) WorkerWindows::abandon(member, v);
}

void BatchCoordinator::carry_out(const BatchEngine::Signal& a, Instant) {
  for (auto& [rank, member] : work_.windows.all()) end_batches_of(member, a.version);
}

void BatchCoordinator::carry_out(const BatchEngine::Tell& a, Instant) {
  send_batch(a.to, a.version, a.bodies.value_or(-1), work_.job.self);
}

void BatchCoordinator::send_batch(NodeId to, Version v, std::int64_t bodies, NodeId of) {
  wire::Message message;
  auto body = message.root().initBatch();
  body.setJob(work_.job.job.value);
  body.setVersion(v.value);
  body.setBodies(bodies);
  if (of != work_.job.self) body.setOf(of.value);
  work_.send(to, message);
}

/// What it did of each update weighs the steps of all; and its signals.
void BatchCoordinator::pass_on(NodeId lost, NodeId to) {
  neighbours_.pass_on(lost, to);
  for (const auto& [v, counts] : told_)
    if (const auto of = counts.find(lost); of != counts.end()) send_batch(to, v, of->second, lost);
  if (const auto over = batches_.last_over()) send_batch(to, *over, -1, work_.job.self);
}

void BatchCoordinator::carry_out(const BatchEngine::Step& a, Instant) {
  waiting_.erase(a.rank);
  work_.windows.set_verdict(a.rank, {.own = a.version.value, .next = a.version.value, .scale = a.scale});
}

void BatchCoordinator::carry_out(const BatchEngine::StandIn& a, Instant now) {
  mixing_.stand_in(a.rank, a.version, now);
}

}  // namespace paceline::scheduler
