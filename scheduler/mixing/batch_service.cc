#include "scheduler/mixing/batch_service.h"

#include <algorithm>
#include <utility>

namespace paceline::scheduler {
namespace {

constexpr std::size_t kUpdatesApart = 256;  // More than two agents' workers can be, with the way between neighbours.

}  // namespace

BatchService::BatchService(Options options, BatchEngine::Options batches, TaskGraph& graph,
                           collective::Averager& averager, SendToNode send)
    : MixService(std::move(options), graph, averager, std::move(send)), batches_(batches), most_(batches.batches) {}

void BatchService::on_batch(Rank rank, Version t, std::int32_t bodies, Duration each, Instant now) {
  if (bodies < 0 || bodies > most_ || (!windows_.living(rank) && !chronicle_.replays())) return;
  if (each > Duration::zero()) batches_.on_pace(rank, each);
  // Of an update that its agent went on without, nothing counts.
  const std::int32_t counted = chronicle_.replays() || batches_.computing(rank) == t ? bodies : 0;
  if (chronicle_.replays()) {
    const auto* then = chronicle_.replay().next_contribution(rank);
    if (then && (then->iteration != t || then->bodies != bodies))
      return chronicle_.lose_way("worker " + to_string(rank) + " did " + std::to_string(bodies) + " mini-batches of update " +
                      to_string(t) + ", which it did not in the run that is replayed");
  }
  chronicle_.hear({.kind = Decision::Kind::batched, .rank = rank, .version = t, .contributions = {{rank, t, counted}}}, now);
}

void BatchService::step(const Decision& d) {
  const Instant now = clock_now();
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
    case Decision::Kind::arrived: waiting_.insert(d.rank); break;
    default: break;
  }
  MixService::step(d);
}

void BatchService::reported(Rank rank, Version t, std::int32_t bodies, Instant now) {
  if (!windows_.living(rank)) return;
  waiting_.insert(rank);
  const auto at = batches_.computing(rank);
  if (at == t) return settle(rank, t, bodies, now);
  // It was stood in for, and goes on with the update that is current, or with the next one once that is mixed.
  if (at && waiting_.erase(rank) > 0) hand_over(rank, Version{at->value - 1}, now);
}

void BatchService::settle(Rank rank, Version v, std::int32_t bodies, Instant now) {
  counters_.abandoned_bodies += most_ - bodies;
  act(batches_.on_done(rank, v, bodies, now), now);
}

void BatchService::let_go(Rank rank, Version own, Instant now) {
  const Version next = own.next();
  batches_.on_begun(rank, next, now);
  if (batches_.is_too_late_for(next)) return settle(rank, next, 0, now);
  if (waiting_.erase(rank) == 0) return;  // It will report.
  if (batches_.is_over(next)) end_batches_of(*windows_.living(rank), next);
  hand_over(rank, own, now);
}

void BatchService::look(Instant now) {
  MixService::look(now);
  pass_over(now);
}

/// Under way with its first mini-batch of v, or with another update.
bool BatchService::has_done_nothing(Rank rank, Version v) {
  const Member* const member = windows_.living(rank);
  if (!member) return false;
  const auto& progress = member->window.progress();
  return progress.step.load(std::memory_order_acquire) != v.value ||
         progress.bodies.load(std::memory_order_acquire) == 0;
}

/// Those that have not answered a signal in time, or would only have to answer that they have nothing.
void BatchService::pass_over(Instant now) {
  if (chronicle_.replays()) return;
  for (const auto& [rank, v, until] : batches_.unanswered())
    if (until <= now || has_done_nothing(rank, v))
      chronicle_.hear({.kind = Decision::Kind::passed_over, .rank = rank, .version = v}, now);
}

std::optional<Instant> BatchService::core_deadline() const {
  const auto one = MixService::core_deadline(), other = batches_.next_deadline();
  return one && other ? std::min(*one, *other) : one ? one : other;
}

void BatchService::on_strategy_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                       Instant now) {
  if (!message.isBatch()) return MixService::on_strategy_message(from, message, std::move(bulk), now);
  const Version v{message.getBatch().getVersion()};
  const auto bodies = message.getBatch().getBodies();
  if (bodies >= 0) {
    const auto of = view_.giver(from, message.getBatch().getOf());
    const auto told = told_.find(v);
    if (!of || (told != told_.end() && told->second.contains(*of))) return;
    counts_[{*of, v}] = bodies;
    chronicle_.hear({.kind = Decision::Kind::partial, .node = *of, .version = v, .at = now}, now);
  } else if (!batches_.is_over(v)) {
    chronicle_.hear({.kind = Decision::Kind::activated, .node = from, .version = v, .at = now}, now);
  }
}

void BatchService::leave(Rank rank, Instant now) {
  waiting_.erase(rank);
  act(batches_.on_gone(rank), now);
  MixService::leave(rank, now);
}

// Actions of the core
// -------------------------------------------------------------------------------------------------------------------

void BatchService::act(const BatchEngine::Actions& actions, Instant now) {
  for (const auto& action : actions) std::visit([&](const auto& a) { carry_out(a, now); }, action);
}

/// In a replay a worker knows by itself.
void BatchService::end_batches_of(Member& member, Version v) {
  if (!chronicle_.replays()) WorkerWindows::abandon(member, v);
}

void BatchService::carry_out(const BatchEngine::Signal& a, Instant) {
  for (auto& [rank, member] : windows_.all()) end_batches_of(member, a.version);
}

void BatchService::carry_out(const BatchEngine::Tell& a, Instant) {
  send_batch(a.to, a.version, a.bodies.value_or(-1), job().self);
}

void BatchService::send_batch(NodeId to, Version v, std::int64_t bodies, NodeId of) {
  wire::Message message;
  auto body = message.root().initBatch();
  body.setJob(job().job.value);
  body.setVersion(v.value);
  body.setBodies(bodies);
  if (of != job().self) body.setOf(of.value);
  send(to, message);
}

/// What it did of each update weighs the steps of all; and its signals.
void BatchService::pass_on(NodeId lost, NodeId to) {
  MixService::pass_on(lost, to);
  for (const auto& [v, counts] : told_)
    if (const auto of = counts.find(lost); of != counts.end()) send_batch(to, v, of->second, lost);
  if (const auto over = batches_.last_over()) send_batch(to, *over, -1, job().self);
}

void BatchService::carry_out(const BatchEngine::Step& a, Instant) {
  waiting_.erase(a.rank);
  windows_.set_verdict(a.rank, {.own = a.version.value, .next = a.version.value, .scale = a.scale});
}

void BatchService::carry_out(const BatchEngine::StandIn& a, Instant now) { stand_in(a.rank, a.version, now); }

}  // namespace paceline::scheduler
