#include "tests/sim/explorer/mix_shell.h"

#include <algorithm>
#include <cmath>

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

bool is_near(double a, double b) { return std::abs(a - b) < 1e-12; }

std::string name(const Contribution& c) {
  return "the contribution of worker " + to_string(c.first) + " to version " + to_string(c.second);
}

}  // namespace

MixShell::MixShell(MixModel model, MixMutation mutation)
    : model_(std::move(model)), mutation_(mutation), plan_(model_.plan()) {}

bool MixShell::spoils(MixState& s, MixMutation mutation) const {
  if (mutation != mutation_ || s.spoilt) return false;
  s.spoilt = true;
  return true;
}

std::unique_ptr<MixPlan> MixShell::plan(NodeId self) const {
  if (mutation_ == MixMutation::plan_differs_on_one_agent && self.value == model_.nodes - 1)
    return std::make_unique<Ahead>(model_.plan());
  return model_.plan();
}

double MixShell::weight(Rank to, Rank from, Version v) const {
  for (const Share& share : plan_->row(to, v)) {
    if (share.from == from) return share.weight;
  }
  return 0;
}

MixState MixShell::start() const {
  MixState s;
  s.agents.resize(static_cast<std::size_t>(model_.nodes));
  for (MixAgent& agent : s.agents) agent.heard.assign(model_.node_of.size(), Version{-1});
  s.workers.resize(model_.node_of.size());
  return s;
}

std::vector<MixMove> MixShell::moves(const MixState& s) const {
  using Phase = MixWorker::Phase;
  std::vector<MixMove> all;
  for (int i = 0; i < workers(); ++i) {
    const MixWorker& w = s.workers[static_cast<std::size_t>(i)];
    if (w.dead || w.phase == Phase::over) continue;
    if (w.phase == Phase::computing) all.push_back({MixMove::Kind::contribute, i});
    if (w.phase == Phase::contributed) all.push_back({MixMove::Kind::want, i});
    const auto& work = s.agents[static_cast<std::size_t>(node(Rank{i}).value)].work;
    const bool in_work = std::any_of(work.begin(), work.end(), [&](const auto& mix) { return mix.rank.value == i; });
    if (model_.crash && !s.crash_used && !in_work) all.push_back({MixMove::Kind::die, i});
  }
  for (const auto& [ends, wire] : s.wires) {
    if (!wire.empty()) all.push_back({MixMove::Kind::deliver, ends.first.value, ends.second.value});
  }
  for (int n = 0; n < model_.nodes; ++n) {
    if (!s.agents[static_cast<std::size_t>(n)].work.empty()) all.push_back({MixMove::Kind::work, n});
  }
  return all;
}

void MixShell::make(MixState& s, const MixMove& move) {
  const auto who = static_cast<std::size_t>(move.who);
  switch (move.kind) {
    case MixMove::Kind::contribute: {
      MixWorker& w = s.workers[who];
      w.phase = MixWorker::Phase::contributed;
      const NodeId id = node(Rank{move.who});
      return hear(s, id, {MixEvent::Kind::contribution, Rank{move.who}, w.t});
    }
    case MixMove::Kind::want: {
      MixWorker& w = s.workers[who];
      w.phase = MixWorker::Phase::waiting;
      const NodeId id = node(Rank{move.who});
      auto& agent = s.agents[static_cast<std::size_t>(id.value)];
      return act(s, id, tell(agent, id, {MixEvent::Kind::wanted, Rank{move.who}, w.t}));
    }
    case MixMove::Kind::die: return die(s, move.who);
    case MixMove::Kind::work: return mix(s, NodeId{move.who});
    case MixMove::Kind::deliver: {
      auto& wire = s.wires[{NodeId{move.who}, NodeId{move.to}}];
      const bool newest = wire.size() > 1 && spoils(s, MixMutation::overtakes);
      const MixEvent event = newest ? wire.back() : wire.front();
      newest ? wire.pop_back() : wire.pop_front();
      return hear(s, NodeId{move.to}, event);
    }
  }
}

MixEngine::Actions MixShell::tell(MixAgent& agent, NodeId self, const MixEvent& event) const {
  MixEngine engine({.self = self, .node_of = model_.node_of, .columns_add_up = true}, plan(self));
  const auto say = [&](const MixEvent& e) {
    switch (e.kind) {
      case MixEvent::Kind::contribution: return engine.on_contribution(e.rank, e.version);
      case MixEvent::Kind::wanted: return engine.on_wanted(e.rank, e.version);
      case MixEvent::Kind::mixed: return engine.on_mixed(e.rank, e.version);
      case MixEvent::Kind::gone: break;
    }
    return engine.on_gone(e.rank, e.version, e.mixed);
  };
  for (const MixEvent& e : agent.told) (void)say(e);
  agent.told.push_back(event);
  return say(event);
}

void MixShell::send(MixState& s, NodeId from, NodeId to, const MixEvent& event) {
  const bool contribution = event.kind == MixEvent::Kind::contribution;
  if (contribution && spoils(s, MixMutation::loses_a_contribution)) return;
  if (!contribution && spoils(s, MixMutation::forgets_the_dead_elsewhere)) return;
  auto& wire = s.wires[{from, to}];
  wire.push_back(event);
  if (contribution && spoils(s, MixMutation::delivers_twice)) wire.push_back(event);
  if (!contribution && event.version.value >= 0 && spoils(s, MixMutation::forgets_a_contribution_of_the_dead))
    --wire.back().version.value;
}

void MixShell::hear(MixState& s, NodeId id, const MixEvent& event) {
  MixAgent& agent = s.agents[static_cast<std::size_t>(id.value)];
  if (event.kind == MixEvent::Kind::gone) {
    agent.gone = event;
  } else {
    Version& last = agent.heard[static_cast<std::size_t>(event.rank.value)];
    if (event.version > last) {
      agent.held.insert({event.rank, event.version});
      last = event.version;
    }
  }
  act(s, id, tell(agent, id, event));
}

void MixShell::die(MixState& s, int who) {
  MixWorker& w = s.workers[static_cast<std::size_t>(who)];
  s.crash_used = w.dead = true;
  const Version mixed{w.t.value - 1};
  const Version contributed = w.phase == MixWorker::Phase::computing ? mixed : w.t;
  const MixEvent event{MixEvent::Kind::gone, Rank{who}, contributed, mixed};
  const NodeId id = node(Rank{who});
  for (std::int32_t n = 0; n < model_.nodes; ++n) {
    if (NodeId{n} != id) send(s, id, NodeId{n}, event);
  }
  hear(s, id, event);
}

void MixShell::act(MixState& s, NodeId id, const MixEngine::Actions& actions) {
  MixAgent& agent = s.agents[static_cast<std::size_t>(id.value)];
  for (const auto& action : actions) {
    if (const auto* a = std::get_if<MixEngine::Send>(&action)) {
      const auto readers = plan_->receivers(a->rank, a->version);
      expect(std::any_of(readers.begin(), readers.end(), [&](Rank r) { return node(r) == a->to; }),
             name({a->rank, a->version}) + " is sent to agent " + to_string(a->to) + ", where nobody takes from it");
      send(s, id, a->to, {MixEvent::Kind::contribution, a->rank, a->version});
    } else if (const auto* m = std::get_if<MixEngine::Mix>(&action)) {
      if (spoils(s, MixMutation::drops_a_mix)) continue;
      MixEngine::Mix mix = *m;
      if (agent.gone && spoils(s, MixMutation::keeps_the_share_of_the_dead)) mix.row = plan_->row(m->rank, m->version);
      check_row(s, agent, mix);
      agent.work.push_back(mix);
      if (spoils(s, MixMutation::mixes_twice)) agent.work.push_back(mix);
    } else {
      const auto& r = std::get<MixEngine::Release>(action);
      if (spoils(s, MixMutation::ignores_releases)) continue;
      check_release(s, id, {r.rank, r.version});
      agent.held.erase({r.rank, r.version});
    }
  }
}

void MixShell::mix(MixState& s, NodeId id) {
  MixAgent& agent = s.agents[static_cast<std::size_t>(id.value)];
  MixEngine::Mix a = agent.work.front();
  agent.work.pop_front();
  if (spoils(s, MixMutation::takes_another_version)) --a.version.value;
  check_mix(s, agent, a);
  if (!violation_.empty()) return;
  for (const Share& share : a.row) s.taken[{share.from, a.version}] += share.weight;
  if (spoils(s, MixMutation::releases_at_once)) agent.held.erase({a.row.front().from, a.version});
  MixWorker& w = s.workers[static_cast<std::size_t>(a.rank.value)];
  w.phase = a.version >= model_.last ? MixWorker::Phase::over : MixWorker::Phase::computing;
  w.t = a.version.next();
  act(s, id, tell(agent, id, {MixEvent::Kind::mixed, a.rank, a.version}));
  check_columns(s, a.version);
}

/// Once, in order, when it is waited for, with all its shares here.
void MixShell::check_mix(const MixState& s, const MixAgent& agent, const MixEngine::Mix& a) {
  const MixWorker& w = s.workers[static_cast<std::size_t>(a.rank.value)];
  const std::string at = "version " + to_string(a.version) + " of worker " + to_string(a.rank) + ": ";
  expect(!w.dead && w.phase == MixWorker::Phase::waiting && w.t == a.version, at + "mixed though it is not waited for");
  for (const Share& share : a.row) {
    expect(agent.held.contains({share.from, a.version}),
           at + "mixed without the contribution of worker " + to_string(share.from));
  }
}

/// Exactly the plan's shares. What one that is gone gives no more is left out; what it takes no more stays with the
/// sender.
void MixShell::check_row(const MixState& s, const MixAgent& agent, const MixEngine::Mix& a) {
  const auto& gone = agent.gone;
  std::map<Rank, double> row, expected;
  for (const Share& share : a.row) row[share.from] += share.weight;
  for (const Share& share : plan_->row(a.rank, a.version)) expected[share.from] = share.weight;
  if (gone) {
    const auto& truth = *s.agents[static_cast<std::size_t>(node(gone->rank).value)].gone;
    if (a.version > truth.version) expected.erase(gone->rank);
    if (a.version > truth.mixed) expected[a.rank] += weight(gone->rank, a.rank, a.version);
  }
  expect(
      row.size() == a.row.size() && row.size() == expected.size() &&
          std::equal(row.begin(), row.end(), expected.begin(),
                     [](const auto& x, const auto& y) { return x.first == y.first && is_near(x.second, y.second); }),
      "version " + to_string(a.version) + " of worker " + to_string(a.rank) + ": mixed from other shares than its own");
}

/// Whoever takes from it here has mixed, or is gone.
void MixShell::check_release(const MixState& s, NodeId id, const Contribution& c) {
  const MixAgent& agent = s.agents[static_cast<std::size_t>(id.value)];
  expect(agent.held.contains(c), name(c) + " is released where it is not held");
  for (int i = 0; i < workers(); ++i) {
    const MixWorker& w = s.workers[static_cast<std::size_t>(i)];
    if (node(Rank{i}) != id || w.dead || weight(Rank{i}, c.first, c.second) == 0) continue;
    expect(w.t > c.second, name(c) + " is released before worker " + std::to_string(i) + " has mixed it");
  }
}

/// When all that live have mixed a version, every contribution of one that lives has been taken whole; only what went
/// to one that died before the sender's agent heard of it may be missing.
void MixShell::check_columns(MixState& s, Version v) {
  for (const MixWorker& w : s.workers) {
    if (!w.dead && w.t <= v) return;
  }
  for (int i = 0; i < workers(); ++i) {
    const Rank from{i};
    if (s.workers[static_cast<std::size_t>(i)].dead) continue;
    double given = s.taken[{from, v}];
    for (int j = 0; j < workers(); ++j) {
      const MixWorker& w = s.workers[static_cast<std::size_t>(j)];
      const bool lost = w.dead && w.t <= v && j != i && is_near(given + weight(Rank{j}, from, v), 1);
      if (lost && !is_near(given, 1)) given += weight(Rank{j}, from, v);
    }
    expect(is_near(given, 1), name({from, v}) + " was taken " + std::to_string(given) + " times");
  }
  std::erase_if(s.taken, [&](const auto& entry) { return entry.first.second == v; });
}

void MixShell::check_end(const MixState& s) {
  for (int i = 0; i < workers(); ++i) {
    const MixWorker& w = s.workers[static_cast<std::size_t>(i)];
    expect(w.dead || w.phase == MixWorker::Phase::over,
           "worker " + std::to_string(i) + " waits for ever at version " + to_string(w.t));
  }
  for (const MixAgent& agent : s.agents) {
    for (const Contribution& c : agent.held) expect(false, name(c) + " is held at the end");
  }
}

}  // namespace paceline::explorer
