#include "tests/sim/explorer/mix_shell.h"

#include <algorithm>

// What can happen, and what a shell does about it. What must hold: mix_checks.cc.

namespace paceline::explorer {
namespace {

/// The plan with everybody one version ahead.
class Ahead final : public MixPlan {
 public:
  explicit Ahead(std::unique_ptr<MixPlan> plan) : plan_(std::move(plan)) {}
  std::vector<Share> row(Rank to, Version v) const override { return plan_->row(to, v.next()); }
  std::vector<Rank> receivers(Rank from, Version v) const override { return plan_->receivers(from, v.next()); }

 private:
  std::unique_ptr<MixPlan> plan_;
};

}  // namespace

using Phase = MixWorker::Phase;

MixShell::MixShell(MixModel model, MixMutation mutation)
    : ClusterShell(model, mutation), model_(std::move(model)), plan_(model_.plan()) {}

std::shared_ptr<const MixPlan> MixShell::plan(NodeId self) const {
  if (mutation_ == MixMutation::plan_differs_on_one_agent && self == last())
    return std::make_unique<Ahead>(model_.plan());
  return plan_;
}

MixState MixShell::start() const {
  MixState s;
  for (std::int32_t n = 0; n < model_.nodes; ++n) {
    MixAgent& agent = s.agents.emplace_back();
    agent.heard.assign(model_.node_of.size(), Version{-1});
    const MixEngine::Options options{NodeId{n}, model_.node_of, model_.columns_add_up};
    agent.engine = std::make_shared<Told<MixEngine>>(MixEngine(options, plan(NodeId{n})));
  }
  s.workers.resize(model_.node_of.size());
  start_network(s);
  return s;
}

std::vector<ClusterMove> MixShell::steps(const MixState& s) const {
  std::vector<Move> all;
  for (int i = 0; i < workers(); ++i) {
    const MixWorker& w = worker(s, Rank{i});
    if (w.dead || w.phase == Phase::over) continue;
    add_steps_of(s, i, all);
    if (!model_.pause || w.phase != Phase::waiting || w.complained) continue;
    const auto missing = agent(s, node(Rank{i})).engine->engine.missing(Rank{i});
    if (missing && is_silent(s, *missing, w.t)) all.push_back({Kind::complain, i});
  }
  add_steps(s, all);
  return all;
}

void MixShell::add_steps_of(const MixState& s, int rank, std::vector<Move>& to) const {
  const MixWorker& w = worker(s, Rank{rank});
  if (w.paused) return;
  const bool has_given = w.contributed == w.t;
  if (w.phase == Phase::computing && !has_given && (!model_.gives_first || w.t == Version{0}))
    to.push_back({Kind::arrive, rank});
  if (w.phase == Phase::contributed || (w.phase == Phase::computing && has_given)) to.push_back({Kind::want, rank});
}

void MixShell::make(MixState& s, const Move& move) {
  if (make_of_cluster(s, move)) return;
  const Rank rank{move.who};
  MixWorker& w = worker(s, rank);
  switch (move.kind) {
    case Kind::arrive:
      if (!model_.gives_first) w.phase = Phase::contributed;
      return contribute(s, rank);
    case Kind::want: return want(s, rank);
    case Kind::complain: return complain(s, rank);
    default: return;
  }
}

void MixShell::contribute(MixState& s, Rank rank) {
  MixWorker& w = worker(s, rank);
  w.contributed = w.t;
  take(s, node(rank), {MixEvent::Kind::contribution, rank, w.t});
}

void MixShell::want(MixState& s, Rank rank) {
  MixWorker& w = worker(s, rank);
  w.phase = Phase::waiting;
  const NodeId id = node(rank);
  act(s, id, tell(agent(s, id).engine, [&](MixEngine& e) { return e.on_wanted(rank, w.t); }));
}

void MixShell::send(MixState& s, NodeId from, NodeId to, const MixEvent& event) {
  const bool contribution = event.kind == MixEvent::Kind::contribution;
  const bool gone = event.kind == MixEvent::Kind::gone;
  if (contribution && spoils(s, MixMutation::loses_a_contribution)) return;
  if (gone && spoils(s, MixMutation::forgets_the_dead_elsewhere)) return;
  MixEvent sent = event;
  if (gone && event.version.value >= 0 && spoils(s, MixMutation::forgets_a_contribution_of_the_dead))
    --sent.version.value;
  ClusterShell::send(s, from, to, sent);
  if (contribution && spoils(s, MixMutation::delivers_twice)) ClusterShell::send(s, from, to, sent);
}

void MixShell::take(MixState& s, NodeId id, const MixEvent& event) {
  MixAgent& a = agent(s, id);
  const auto& [kind, rank, v, mixed, bodies] = event;
  if (kind == MixEvent::Kind::awaited) return on_awaited(s, rank, v);
  if (kind == MixEvent::Kind::gone) {
    a.gone.try_emplace(rank, s.deaths.at(rank));
    if (node(rank) != id) on_death(s, id, rank);
    act(s, id,
        tell(a.engine, [&, rank = rank, v = v, mixed = mixed](MixEngine& e) { return e.on_gone(rank, v, mixed); }));
    return forget_used(s, id);
  }
  Version& last = a.heard[static_cast<std::size_t>(rank.value)];
  if (v > last) {
    if (model_.alike && node(rank) != id) {
      Version& given = a.given.try_emplace(node(rank), v).first->second;
      given = std::max(given, v);
      forget_used(s, id);
    }
    a.held.insert({rank, v});
    last = v;
  }
  act(s, id, tell(a.engine, [&, rank = rank, v = v](MixEngine& e) { return e.on_contribution(rank, v); }));
}

void MixShell::act(MixState& s, NodeId id, const MixEngine::Actions& actions) {
  MixAgent& a = agent(s, id);
  for (const auto& action : actions) {
    if (const auto* sent = std::get_if<MixEngine::Send>(&action)) {
      const auto readers = plan_->receivers(sent->rank, sent->version);
      expect(std::any_of(readers.begin(), readers.end(), [&](Rank r) { return node(r) == sent->to; }),
             "a contribution of worker " + to_string(sent->rank) + " is sent to agent " + to_string(sent->to) +
                 ", where nobody takes from it");
      send(s, id, sent->to, {MixEvent::Kind::contribution, sent->rank, sent->version});
    } else if (const auto* m = std::get_if<MixEngine::Mix>(&action)) {
      if (spoils(s, MixMutation::drops_a_mix)) continue;
      MixEngine::Mix mix = *m;
      if (!a.gone.empty() && spoils(s, MixMutation::keeps_the_share_of_the_dead))
        mix.row = plan_->row(m->rank, m->version);
      check_row(s, a, mix);
      a.work.push_back(mix);
      if (spoils(s, MixMutation::mixes_twice)) a.work.push_back(mix);
    } else {
      const auto& r = std::get<MixEngine::Release>(action);
      if (!spoils(s, MixMutation::ignores_releases)) release(s, id, {r.rank, r.version});
    }
  }
}

void MixShell::work(MixState& s, NodeId id) {
  MixAgent& a = agent(s, id);
  MixEngine::Mix mix = a.work.front();
  a.work.erase(a.work.begin());
  if (worker(s, mix.rank).dead) return;
  if (spoils(s, MixMutation::takes_another_version)) --mix.version.value;
  check_mix(s, a, mix);
  if (!violation().empty()) return;
  note_taken(s, mix);
  if (spoils(s, MixMutation::releases_at_once)) a.held.erase({mix.row.front().from, mix.version});
  MixWorker& w = worker(s, mix.rank);
  w.phase = mix.version >= model_.last ? Phase::over : Phase::computing;
  w.t = mix.version.next();
  w.complained = false;
  act(s, id, tell(a.engine, [&](MixEngine& e) { return e.on_mixed(mix.rank, mix.version); }));
  check_columns(s);
  if (w.phase == Phase::over) return;
  let_go(s, mix.rank, mix.version);
  if (model_.gives_first) contribute(s, mix.rank);
}

void MixShell::let_go(MixState&, Rank, Version) {}

// Who is gone, and who is silent
// ---------------------------------------------------------------------------------------------------------------------

void MixShell::die(MixState& s, Rank rank) {
  MixWorker& w = worker(s, rank);
  w.dead = true;
  const Version mixed{w.t.value - 1};
  const MixEvent event{MixEvent::Kind::gone, rank, w.contributed, mixed};
  s.deaths.emplace(rank, event);
  const NodeId id = node(rank);
  on_death(s, id, rank);
  for (const NodeId to : others(s, id)) send(s, id, to, event);
  take(s, id, event);
  check_columns(s);
}

void MixShell::complain(MixState& s, Rank rank) {
  MixWorker& w = worker(s, rank);
  const NodeId id = node(rank);
  const Rank missing = *agent(s, id).engine->engine.missing(rank);
  w.complained = true;
  if (mutation_ == MixMutation::complains_to_nobody) return;
  if (node(missing) == id) return on_awaited(s, missing, w.t);
  send(s, id, node(missing), {MixEvent::Kind::awaited, missing, w.t});
}

/// It leaves, unless it is ahead of that, waits itself, or gives signs of life.
void MixShell::on_awaited(MixState& s, Rank rank, Version v) {
  if (is_silent(s, rank, v)) die(s, rank);
}

bool MixShell::is_silent(const MixState& s, Rank rank, Version v) {
  const MixWorker& w = worker(s, rank);
  return !w.dead && w.paused && w.phase != Phase::waiting && w.contributed < v;
}

void MixShell::end_last(MixState& s) {
  agent(s, last()).work.clear();
  for (int i = 0; i < workers(); ++i)
    if (node(Rank{i}) == last()) worker(s, Rank{i}).dead = true;
  check_columns(s);
}

void MixShell::go_on_without(MixState& s, NodeId self) {
  MixAgent& a = agent(s, self);
  for (int i = 0; i < workers(); ++i) {
    const Rank rank{i};
    if (node(rank) != last()) continue;
    const Version heard = a.heard[static_cast<std::size_t>(i)];
    MixEvent& end = a.gone.try_emplace(rank, MixEvent{MixEvent::Kind::gone, rank, heard}).first->second;
    end.version = std::min(end.version, heard);
    on_death(s, self, rank);
    act(s, self, tell(a.engine, [&](MixEngine& e) { return e.on_lost(rank); }));
  }
  forget_used(s, self);
}

// What all must have
// -------------------------------------------------------------------------------------------------------------------

void MixShell::release(MixState& s, NodeId id, const Contribution& c) {
  check_release(s, id, c);
  MixAgent& a = agent(s, id);
  if (a.held.erase(c) == 0 || !model_.alike || node(c.first) == id) return;
  if (mutation_ == MixMutation::keeps_nothing_to_pass_on) return;
  for (const NodeId other : others(s, id))
    if (other != node(c.first) && may_lack(s, id, other, c.second)) a.used.insert(c);
}

bool MixShell::may_lack(const MixState& s, NodeId self, NodeId other, Version v) const {
  const MixAgent& a = agent(s, self);
  bool has_worker = false;
  for (int i = 0; i < workers(); ++i) has_worker = has_worker || (node(Rank{i}) == other && !a.gone.contains(Rank{i}));
  const auto given = a.given.find(other);
  return has_worker && (given == a.given.end() || given->second <= v);
}

void MixShell::forget_used(MixState& s, NodeId self) const {
  const auto all = others(s, self);
  std::erase_if(agent(s, self).used, [&](const Contribution& c) {
    return std::none_of(all.begin(), all.end(),
                        [&](NodeId other) { return other != node(c.first) && may_lack(s, self, other, c.second); });
  });
}

void MixShell::pass_on(MixState& s, NodeId self, NodeId to) {
  if (!model_.alike) return;
  for (const auto* contributions : {&agent(s, self).used, &agent(s, self).held})
    for (const auto& [rank, v] : *contributions)
      if (node(rank) == last() && may_lack(s, self, to, v)) send(s, self, to, {MixEvent::Kind::contribution, rank, v});
}

}  // namespace paceline::explorer
