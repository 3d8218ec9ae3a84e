#include "tests/sim/explorer/round_shell.h"

#include <algorithm>

// What can happen, and what a shell does about it. What must hold: round_checks.cc.

namespace paceline::explorer {

using scheduler::Lateness;
using scheduler::Round;
using std::chrono::seconds;

namespace {

std::uint8_t bit(Version v) { return static_cast<std::uint8_t>(1U << static_cast<unsigned>(v.value)); }

/// Where once would be mended by what follows, or goes unnoticed.
bool always(Mutation m) {
  switch (m) {
    case Mutation::loses_activations:
    case Mutation::ignores_deadlines:
    case Mutation::is_impatient:
    case Mutation::duplicates_partials:
    case Mutation::duplicates_activations: return true;
    default: return false;
  }
}

}  // namespace

RoundShell::RoundShell(Model model, Mutation mutation) : model_(std::move(model)), mutation_(mutation) {}

bool RoundShell::spoils(State& s, Mutation mutation) const {
  if (mutation != mutation_ || s.spoilt) return false;
  s.spoilt = !always(mutation);
  return true;
}

std::unique_ptr<test::TestPlan> RoundShell::plan(NodeId self) const {
  auto answers = model_.answers;
  if (self.value != model_.nodes - 1) return std::make_unique<test::TestPlan>(answers);
  if (mutation_ == Mutation::skips_a_version_on_one_agent) {
    answers.round = [given = answers.round](Version v) { return v.value == 0 ? Round{} : given(v); };
  }
  if (mutation_ == Mutation::groups_differ_on_one_agent) {
    answers.groups = [given = answers.groups](Version v) { return given(v.next()); };
  }
  return std::make_unique<test::TestPlan>(answers);
}

State RoundShell::start() {
  State s;
  RoundEngine::Options options;
  options.node_of = model_.node_of;
  options.last = model_.last;
  options.patience_median_steps = 0;
  for (std::int32_t n = 0; n < model_.nodes; ++n) {
    options.self = NodeId{n};
    s.agents.emplace_back();
    s.agents.back().core = cores_.add(options.self, RoundEngine(options, plan(options.self)));
    if (model_.loss)
      s.agents.back().view = std::make_shared<const View>(
          scheduler::ViewChange(options.self, std::set<NodeId>(model_.node_of.begin(), model_.node_of.end())));
  }
  s.workers.resize(model_.node_of.size());
  const test::TestPlan first(model_.answers);
  for (Worker& w : s.workers) {
    if (!model_.answers.publishes_every_iteration) w.next_round = first.next_round(Version{0});
    if (gives_once(Version{0})) w.publication.tag = Content::kNothing;
  }
  return s;
}

bool RoundShell::gives_once(Version v) const {
  const auto late = round(v).late;
  return late == Lateness::accumulates || late == Lateness::drops;
}

std::vector<Move> RoundShell::steps(const State& s) const {
  std::vector<Move> moves;
  for (int i = 0; i < static_cast<int>(s.workers.size()); ++i) {
    const Worker& w = s.workers[static_cast<std::size_t>(i)];
    if (w.paused || w.left) continue;
    if (!w.reports.empty() && !w.noticed) moves.push_back({Move::Kind::report, i});
    if (w.dead && !w.noticed) moves.push_back({Move::Kind::notice, i});
    if (may_restore(s, i)) moves.push_back({Move::Kind::restore, i});
    if (w.dead || w.phase == Worker::Phase::over) continue;
    if (w.phase == Worker::Phase::computing) moves.push_back({Move::Kind::publish, i});
    if (!abandons(w.t)) continue;
    if (model_.parts && w.phase == Worker::Phase::computing && w.publication.tag != w.t.value)
      moves.push_back({Move::Kind::part, i});
    if (agent_of(s, i).result >= w.t) moves.push_back({Move::Kind::take_up, i});
  }
  for (int m = 0; m < static_cast<int>(s.network.size()); ++m)
    if (may_arrive(s, static_cast<std::size_t>(m))) moves.push_back({Move::Kind::deliver, m});
  for (int n = 0; n < model_.nodes; ++n) {
    if (!s.agents[static_cast<std::size_t>(n)].work.empty()) moves.push_back({Move::Kind::work, n});
    if (s.loss_used && NodeId{n} != lost_agent() &&
        s.agents[static_cast<std::size_t>(n)].view->change.members().contains(lost_agent()))
      moves.push_back({Move::Kind::hear_loss, n});
  }
  return moves;
}

std::vector<Move> RoundShell::thaws(const State& s) const {
  std::vector<Move> moves;
  for (int i = 0; i < static_cast<int>(s.workers.size()); ++i) {
    const Worker& w = s.workers[static_cast<std::size_t>(i)];
    if (w.paused && w.takes_part()) moves.push_back({Move::Kind::thaw, i});
  }
  return moves;
}

std::vector<Move> RoundShell::faults(const State& s) const {
  std::vector<Move> moves;
  for (int i = 0; i < static_cast<int>(s.workers.size()); ++i) {
    const Worker& w = s.workers[static_cast<std::size_t>(i)];
    if (may_come_back(s, i)) moves.push_back({Move::Kind::come_back, i});
    if (!w.takes_part() || w.phase == Worker::Phase::over) continue;
    const bool acts = w.phase == Worker::Phase::computing || !w.reports.empty();
    if (model_.pause && !s.pause_used && acts) moves.push_back({Move::Kind::pause, i});
    if (model_.crash && !s.crash_used && !w.paused) moves.push_back({Move::Kind::crash, i});
  }
  if (model_.loss && !s.loss_used) moves.push_back({Move::Kind::lose, lost_agent().value});
  return moves;
}

std::vector<Move> RoundShell::ticks(const State& s) const {
  std::vector<Move> moves;
  if (mutation_ == Mutation::ignores_deadlines) return moves;
  for (int n = 0; n < model_.nodes; ++n) {
    const RoundEngine& e = s.agents[static_cast<std::size_t>(n)].core->engine;
    if (!e.next_deadline()) continue;
    const auto waiting = e.waiting();
    const bool for_the_paused =
        !waiting ? !thaws(s).empty()
                 : !waiting->missing.empty() &&
                       std::all_of(waiting->missing.begin(), waiting->missing.end(),
                                   [&](Rank r) { return s.workers[static_cast<std::size_t>(r.value)].paused; });
    if (for_the_paused || model_.clock_runs || mutation_ == Mutation::is_impatient)
      moves.push_back({Move::Kind::tick, n});
  }
  return moves;
}

void RoundShell::make(State& s, const Move& move) {
  const auto who = static_cast<std::size_t>(move.who);
  const NodeId id{move.who};
  switch (move.kind) {
    case Move::Kind::publish: return publish(s.workers[who], true);
    case Move::Kind::part: return publish(s.workers[who], false);
    case Move::Kind::report: {
      Worker& w = s.workers[who];
      const Version t = w.reports.front();
      w.reports.erase(w.reports.begin());
      if (spoils(s, Mutation::loses_an_arrival)) return;
      if (w.comes_back == Worker::Return::restored && !w.exact) w.comes_back = Worker::Return::none;
      const Rank rank{move.who};
      return act(s, node(move.who),
                 step(agent_of(s, move.who), {kArrival, move.who, t.value, s.now.count()},
                      [&](RoundEngine& e) { return e.on_arrival(rank, t, seconds(1), Instant{s.now}); }));
    }
    case Move::Kind::take_up: {
      Worker& w = s.workers[who];
      const Version v = agent_of(s, move.who).result;
      w.t = v.next();
      w.phase = v >= model_.last ? Worker::Phase::over : Worker::Phase::computing;
      return;
    }
    case Move::Kind::pause: s.pause_used = s.workers[who].paused = true; return;
    case Move::Kind::thaw: s.workers[who].paused = false; return;
    case Move::Kind::crash: s.crash_used = s.workers[who].dead = true; return;
    case Move::Kind::notice: {
      s.workers[who].noticed = true;
      if (spoils(s, Mutation::forgets_the_dead)) return;
      const Rank rank{move.who};
      return act(s, node(move.who), step(agent_of(s, move.who), {kGone, move.who, s.now.count()}, [&](RoundEngine& e) {
                   return e.on_gone(rank, Instant{s.now});
                 }));
    }
    case Move::Kind::deliver: {
      const Message m = s.network[who];
      s.network.erase(s.network.begin() + move.who);
      const Agent& agent = s.agents[index(m.to)];
      if (agent.view && !agent.view->change.members().contains(m.from)) return;
      if (std::holds_alternative<Flushed>(m.body)) return take_flushed(s, m);
      if (const auto* p = std::get_if<RoundEngine::SendPartial>(&m.body))
        return take_partial(s, m.to, m.from, {p->version, p->group}, m.sum);
      return act(s, m.to, deliver(s.agents[index(m.to)], m, s.now));
    }
    case Move::Kind::come_back: {
      s.workers[who].comes_back = Worker::Return::came;
      const Rank rank{move.who};
      return act(s, node(move.who),
                 step(agent_of(s, move.who), {kReturn, move.who, s.now.count()},
                      [&](RoundEngine& e) { return e.on_return(rank, Instant{s.now}); }));
    }
    case Move::Kind::restore: return restore(s, move.who);
    case Move::Kind::lose: return lose(s);
    case Move::Kind::hear_loss:
      return act(s, id, change_view(s.agents[who], [&](auto& view) { return view.on_lost(lost_agent()); }));
    case Move::Kind::work: return carry_out_next(s, id);
    case Move::Kind::tick: {
      s.now = std::max(s.now, s.agents[who].core->engine.next_deadline()->time_since_epoch());
      return act(s, id,
                 step(s.agents[who], {kTick, s.now.count()}, [&](RoundEngine& e) { return e.tick(Instant{s.now}); }));
    }
  }
}

bool RoundShell::may_come_back(const State& s, int rank) const {
  const Worker& w = s.workers[static_cast<std::size_t>(rank)];
  return model_.returns && w.dead && w.noticed && w.comes_back == Worker::Return::none &&
         agent_of(s, rank).core->engine.is_free(Rank{rank});
}

/// Another worker has come to the state that it needs.
bool RoundShell::may_restore(const State& s, int rank) const {
  const Worker& w = s.workers[static_cast<std::size_t>(rank)];
  return w.comes_back == Worker::Return::admitted &&
         std::any_of(s.workers.begin(), s.workers.end(),
                     [&](const Worker& other) { return other.takes_part() && (!w.exact || other.t > w.after); });
}

void RoundShell::restore(State& s, int rank) {
  Worker& w = s.workers[static_cast<std::size_t>(rank)];
  for (const Agent& agent : s.agents)
    expect(!w.exact || agent.core->engine.done() <= w.after, "a worker that comes back is not waited for");
  Version t = w.after.next();
  if (!w.exact) {
    t = agent_of(s, rank).core->engine.done().next();
    if (!w.may_skip)
      for (const Worker& other : s.workers)
        if (other.takes_part()) t = std::max(t, other.t);
    w.after = Version{t.value - 1};
  }
  w.comes_back = Worker::Return::restored;
  w.dead = w.noticed = false;
  w.reports.clear();
  w.delivered = w.retained = w.merged = Version{-1};
  w.contributed = 0;
  w.given_up = 0xff;  // What its last process had is lost.
  w.publication = {.tag = gives_once(t) ? Content::kNothing : static_cast<std::int8_t>(t.value - 1)};
  w.next_round = t;
  begin(w, t);
  if (t > model_.last) w.phase = Worker::Phase::over;
}

/// That a worker is back comes behind that it had left: links keep their order.
bool RoundShell::may_arrive(const State& s, std::size_t message) const {
  const Message& m = s.network[message];
  const auto* const gone = std::get_if<RoundEngine::Gone>(&m.body);
  return gone == nullptr || !gone->back || std::none_of(s.network.begin(), s.network.end(), [&](const Message& other) {
           const auto* const before = std::get_if<RoundEngine::Gone>(&other.body);
           return before != nullptr && !before->back && other.from == m.from && other.to == m.to;
         });
}

void RoundShell::take_partial(State& s, NodeId to, NodeId of, Key key, const Contents& sum) {
  Agent& agent = s.agents[index(to)];
  if (key.first > agent.core->engine.done()) agent.partials[key].try_emplace(of, sum);
  if (model_.loss && of == lost_agent() && !all_have_executed(s, key)) agent.of_lost.try_emplace(key, sum);
  const Message m{of, to, RoundEngine::SendPartial{to, key.first, key.second}, sum};
  act(s, to, deliver(agent, m, s.now));
}

/// With all its workers; what it has sent may still arrive at who has not heard of it.
void RoundShell::lose(State& s) const {
  s.loss_used = true;
  s.agents[index(lost_agent())].work.clear();
  for (int i = 0; i < static_cast<int>(s.workers.size()); ++i) {
    if (node(i) != lost_agent()) continue;
    s.workers[static_cast<std::size_t>(i)].dead = s.workers[static_cast<std::size_t>(i)].left = true;
    s.workers[static_cast<std::size_t>(i)].reports.clear();
  }
  std::erase_if(s.network, [this](const Message& m) { return m.to == lost_agent(); });
}

void RoundShell::act(State& s, NodeId id, const scheduler::ViewChange::Actions& actions) {
  for (const auto& action : actions) {
    if (const auto* flush = std::get_if<scheduler::ViewChange::Flush>(&action)) {
      Flushed flushed{flush->lost, s.agents[index(id)].of_lost};
      if (!flushed.passed_on.empty() && spoils(s, Mutation::passes_nothing_on)) flushed.passed_on.clear();
      s.network.push_back({id, flush->to, std::move(flushed), {}});
    } else {
      act(s, id, step(s.agents[index(id)], {kNodeGone, s.now.count()}, [&](RoundEngine& e) {
            return e.on_node_gone(lost_agent(), Instant{s.now});
          }));
    }
  }
}

void RoundShell::take_flushed(State& s, const Message& m) {
  const auto& flushed = std::get<Flushed>(m.body);
  for (const auto& [key, sum] : flushed.passed_on) take_partial(s, m.to, lost_agent(), key, sum);
  act(s, m.to, change_view(s.agents[index(m.to)], [&](auto& view) { return view.on_flushed(m.from, flushed.lost); }));
}

bool RoundShell::all_have_executed(const State& s, const Key& key) const {
  return std::all_of(s.agents.begin(), s.agents.end(), [&](const Agent& agent) {
    return agent.core->self == lost_agent() || agent.core->engine.done() >= key.first;
  });
}

const RoundEngine::Actions& RoundShell::deliver(Agent& to, const Message& m, Duration at) {
  const auto& stepped = answer(*to.core, m, at);
  to.core = stepped.core;
  return stepped.actions;
}

const RoundCores::Stepped& RoundShell::answer(const Core& to, const Message& m, Duration at) {
  const Instant now{at};
  if (const auto* a = std::get_if<RoundEngine::Activate>(&m.body)) {
    return cores_.step(to, {kActivation, a->root.value, m.from.value, a->version.value, at.count()},
                       [&](RoundEngine& e) { return e.on_activation(a->root, m.from, a->version, now); });
  }
  if (const auto* c = std::get_if<RoundEngine::Count>(&m.body)) {
    return cores_.step(to, {kCount, c->version.value, at.count()},
                       [&](RoundEngine& e) { return e.on_count(c->version, now); });
  }
  if (const auto* g = std::get_if<RoundEngine::Gone>(&m.body)) {
    const auto kind = g->back ? kBackElsewhere : kGoneElsewhere;
    return cores_.step(to, {kind, g->rank.value, at.count()}, [&](RoundEngine& e) {
      if (!g->back) return e.on_gone_elsewhere(g->rank, now);
      e.on_back_elsewhere(g->rank);
      return RoundEngine::Actions{};
    });
  }
  const auto& p = std::get<RoundEngine::SendPartial>(m.body);
  return cores_.step(to, {kPartial, m.from.value, p.version.value, p.group, at.count()},
                     [&](RoundEngine& e) { return e.on_partial(m.from, p.version, p.group, now); });
}

void RoundShell::drop_idle_messages(State& s) {
  for (Agent& agent : s.agents)
    std::erase_if(agent.of_lost, [&](const auto& sum) { return all_have_executed(s, sum.first); });
  std::erase_if(s.network, [&](const Message& m) {
    const auto& view = s.agents[index(m.to)].view;
    if (view && !view->change.members().contains(m.from)) return true;
    if (std::holds_alternative<Flushed>(m.body)) return false;
    const auto* partial = std::get_if<RoundEngine::SendPartial>(&m.body);
    if (partial != nullptr && model_.loss && m.from == lost_agent() &&
        !all_have_executed(s, {partial->version, partial->group}))
      return false;
    const auto& core = s.agents[index(m.to)].core;
    const auto& stepped = answer(*core, m, s.now);
    return stepped.actions.empty() && stepped.core == core;
  });
}

void RoundShell::publish(Worker& w, bool whole) {
  const Version t = w.t;
  if (t < w.next_round) return begin(w, t.next());
  const auto late = round(t).late;
  w.publication.tag = static_cast<std::int8_t>(t.value);
  if (gives_once(t)) {
    w.publication.gradients =
        static_cast<std::uint8_t>((late == Lateness::accumulates ? w.publication.gradients : 0) | bit(t));
  } else {  // A model: it has taken the step itself, with what it still had to give.
    expect((w.contributed & w.publication.gradients) == 0, "a worker applies a gradient that it has given");
    w.given_up = static_cast<std::uint8_t>(w.given_up | w.publication.gradients);
    w.publication.gradients = 0;
  }
  if (!whole) return;
  w.phase = Worker::Phase::waiting;
  w.reports.push_back(t);
}

void RoundShell::begin(Worker& w, Version t) const {
  w.t = t;
  w.phase = Worker::Phase::computing;
}

Contents RoundShell::publications(const State& s, const std::vector<Rank>& members) const {
  Contents contents;
  for (const Rank r : members)
    contents[static_cast<std::size_t>(r.value)] = s.workers[static_cast<std::size_t>(r.value)].publication;
  return contents;
}

}  // namespace paceline::explorer
