#include "tests/sim/explorer/batch_shell.h"

#include <algorithm>
#include <cmath>

namespace paceline::explorer {
namespace {

using Does = MixWorker::Does;
using Phase = MixWorker::Phase;

constexpr Instant kNow{};  // Whether a grace is over is a move of its own.

void begin(MixWorker& w, Version v) {
  w.does = Does::bodies;
  w.at = v;
  w.bodies = 0;
}

}  // namespace

MixState BatchShell::start() const {
  MixState s = MixShell::start();
  for (std::int32_t n = 0; n < model_.nodes; ++n) {
    BatchEngine engine({NodeId{n}, model_.node_of, model_.batches, model_.drops, model_.weight});
    for (int i = 0; i < workers(); ++i)
      if (node(Rank{i}) == NodeId{n}) engine.on_begun(Rank{i}, Version{0}, kNow);
    agent(s, NodeId{n}).batches = std::make_shared<Told<BatchEngine>>(std::move(engine));
  }
  return s;
}

void BatchShell::add_steps_of(const MixState& s, int rank, std::vector<Move>& to) const {
  const MixWorker& w = worker(s, Rank{rank});
  if (w.does == Does::has_reported) to.push_back({Kind::report, rank});
  if (!w.paused && w.does == Does::bodies) to.push_back({Kind::body, rank});
  if (!w.paused && w.does == Does::steps) to.push_back({Kind::arrive, rank});
  if (mutation_ != MixMutation::complains_to_nobody)
    for (const auto& awaited : batches(s, Rank{rank}).awaited())
      if (awaited.rank == Rank{rank} && w.paused) to.push_back({Kind::die, rank});
  if (mutation_ == MixMutation::passes_nobody_over) return;
  for (const auto& unanswered : batches(s, Rank{rank}).unanswered()) {
    const bool has_nothing = w.at != unanswered.version || w.bodies == 0;
    if (unanswered.rank == Rank{rank} && (model_.any_grace || w.paused || has_nothing))
      to.push_back({Kind::pass_over, rank});
  }
}

void BatchShell::make(MixState& s, const Move& move) {
  const Rank rank{move.who};
  switch (move.kind) {
    case Kind::body: return do_body(s, rank);
    case Kind::report: return reported(s, rank);
    case Kind::arrive: worker(s, rank).does = Does::rests; return mix(s, rank);
    case Kind::pass_over: return settle(s, rank, *batches(s, rank).computing(rank), 0);
    default: return MixShell::make(s, move);
  }
}

/// It looks at the signal between two of them.
void BatchShell::do_body(MixState& s, Rank rank) {
  MixWorker& w = worker(s, rank);
  const bool ended = agent(s, node(rank)).over >= w.at;
  if (!ended || !model_.drops) ++w.bodies;
  if (!ended && w.bodies < model_.batches) return;
  if (w.bodies == model_.batches) s.completed = std::max(s.completed, w.at);
  w.does = Does::has_reported;
}

/// Of an update that its agent went on without, nothing counts: it goes on with the one that is current, or with the
/// next one once that is mixed.
void BatchShell::reported(MixState& s, Rank rank) {
  MixWorker& w = worker(s, rank);
  w.does = Does::asks;
  const auto at = batches(s, rank).computing(rank);
  if (at == w.at) {
    const bool lies = w.bodies < model_.batches && spoils(s, MixMutation::counts_what_was_not_done);
    settle(s, rank, w.at, lies ? model_.batches : w.bodies);
  } else if (at) {
    begin(w, *at);
  }
}

void BatchShell::settle(MixState& s, Rank rank, Version v, std::int32_t bodies) {
  const NodeId id = node(rank);
  act(s, id, tell(agent(s, id).batches, [&](BatchEngine& e) { return e.on_done(rank, v, bodies, kNow); }));
}

/// Its model takes part.
void BatchShell::mix(MixState& s, Rank rank) {
  want(s, rank);
  contribute(s, rank);
}

void BatchShell::let_go(MixState& s, Rank rank, Version own) {
  const NodeId id = node(rank);
  tell(agent(s, id).batches, [&](BatchEngine& e) {
    e.on_begun(rank, own.next(), kNow);
    return 0;
  });
  if (batches(s, rank).is_too_late_for(own.next())) return settle(s, rank, own.next(), 0);
  MixWorker& w = worker(s, rank);
  if (w.does == Does::asks || w.does == Does::rests) begin(w, own.next());
}

void BatchShell::on_death(MixState& s, NodeId id, Rank rank) {
  act(s, id, tell(agent(s, id).batches, [&](BatchEngine& e) { return e.on_gone(rank); }));
}

void BatchShell::take(MixState& s, NodeId to, const MixEvent& event) {
  MixAgent& a = agent(s, to);
  if (event.kind == MixEvent::Kind::signal) {
    act(s, to, tell(a.batches, [&](BatchEngine& e) { return e.on_signal(event.version, kNow); }));
  } else if (event.kind == MixEvent::Kind::counts) {
    const NodeId of{event.rank.value};
    if (!a.told.try_emplace({event.version, of}, event.bodies).second) return;
    act(s, to, tell(a.batches, [&](BatchEngine& e) { return e.on_counts(of, event.version, event.bodies); }));
  } else {
    MixShell::take(s, to, event);
  }
}

void BatchShell::pass_on(MixState& s, NodeId self, NodeId to) {
  MixShell::pass_on(s, self, to);
  const MixAgent& a = agent(s, self);
  for (const auto& [of, bodies] : a.told) {
    if (of.second != last()) continue;
    ClusterShell::send(s, self, to, MixEvent{MixEvent::Kind::counts, Rank{last().value}, of.first, {}, bodies});
  }
  if (const auto over = a.batches->engine.last_over())
    ClusterShell::send(s, self, to, MixEvent{MixEvent::Kind::signal, Rank{-1}, *over});
}

// Actions of the core
// --------------------------------------------------------------------------------------------------------------------

void BatchShell::act(MixState& s, NodeId id, const BatchEngine::Actions& actions) {
  for (const auto& action : actions) std::visit([&](const auto& a) { carry_out(s, id, a); }, action);
}

void BatchShell::carry_out(MixState& s, NodeId id, const BatchEngine::Signal& a) {
  expect(a.version <= s.completed,
         "agent " + to_string(id) + " ends update " + to_string(a.version) + ", of which nobody has done all");
  agent(s, id).over = std::max(agent(s, id).over, a.version);
}

void BatchShell::carry_out(MixState& s, NodeId id, const BatchEngine::Tell& a) {
  if (a.bodies && spoils(s, MixMutation::tells_no_counts)) return;
  if (!a.bodies && mutation_ == MixMutation::loses_a_signal) return;
  const auto kind = a.bodies ? MixEvent::Kind::counts : MixEvent::Kind::signal;
  ClusterShell::send(s, id, a.to, MixEvent{kind, Rank{a.bodies ? id.value : -1}, a.version, {}, a.bodies.value_or(0)});
}

/// Once an update, with all that it has done of it, by what that weighs. Where all mini-batches weigh the same, all
/// that cannot be lost know the same sum.
void BatchShell::carry_out(MixState& s, NodeId, const BatchEngine::Step& a) {
  MixWorker& w = worker(s, a.rank);
  const std::string at = "update " + to_string(a.version) + " of worker " + to_string(a.rank) + ": ";
  expect(w.does == Does::asks && w.at == a.version && w.bodies == a.bodies, at + "it is to step, and has not asked");
  expect(s.stepped.insert({a.rank, a.version}).second, at + "settled twice");
  const double all = model_.batches;
  double scale = 0;
  switch (model_.weight) {
    case BatchEngine::Weight::share: scale = 1 / all; break;
    case BatchEngine::Weight::share_squared: scale = a.bodies / (all * all); break;
    case BatchEngine::Weight::of_all:
      scale = may_be_lost(a.rank.value) ? a.scale : s.scales.try_emplace(a.version, a.scale).first->second;
  }
  expect(std::abs(scale - a.scale) < 1e-12, at + "it weighs its mini-batches otherwise than the others");
  w.does = Does::steps;
  if (spoils(s, MixMutation::steps_twice)) carry_out(s, node(a.rank), a);
}

void BatchShell::carry_out(MixState& s, NodeId, const BatchEngine::StandIn& a) {
  expect(s.stepped.insert({a.rank, a.version}).second,
         "update " + to_string(a.version) + " of worker " + to_string(a.rank) + ": settled twice");
  mix(s, a.rank);
}

}  // namespace paceline::explorer
