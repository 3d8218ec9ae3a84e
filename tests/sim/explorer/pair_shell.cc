#include "tests/sim/explorer/pair_shell.h"

#include <algorithm>

namespace paceline::explorer {
namespace {

using Does = PairWorker::Phase;

std::string name(const PairEngine::Meeting& meeting) {
  return "the meeting of workers " + to_string(meeting.low()) + " and " + to_string(meeting.high());
}

}  // namespace

PairShell::PairShell(PairModel model, PairMutation mutation)
    : ClusterShell(model, mutation), model_(std::move(model)) {}

PairState PairShell::start() const {
  PairState s;
  for (std::int32_t n = 0; n < model_.nodes; ++n)
    s.agents.emplace_back().engine = std::make_shared<Told<PairEngine>>(PairEngine({NodeId{n}, model_.node_of}));
  s.workers.resize(model_.node_of.size());
  start_network(s);
  return s;
}

std::vector<ClusterMove> PairShell::steps(const PairState& s) const {
  std::vector<Move> all;
  for (int i = 0; i < workers(); ++i) {
    const PairWorker& w = worker(s, Rank{i});
    if (w.dead) continue;
    if (!w.paused && w.phase == Does::before) all.push_back({Kind::begin, i});
    if (!w.paused && w.phase == Does::computing) all.push_back({Kind::arrive, i});
    if (w.paused && is_awaited(s, i)) all.push_back({Kind::complain, i});
  }
  add_steps(s, all);
  return all;
}

/// Others cannot go on, or end, before it does.
bool PairShell::is_awaited(const PairState& s, int rank) const {
  const PairWorker& w = worker(s, Rank{rank});
  if (mutation_ == PairMutation::waits_for_the_frozen || (w.phase != Does::before && w.phase != Does::computing))
    return false;
  const PairAgent& a = agent(s, node(Rank{rank}));
  const auto awaited = a.engine->engine.awaited();
  return !a.ended.empty() || !a.done.empty() || std::count(awaited.begin(), awaited.end(), Rank{rank}) > 0;
}

void PairShell::make(PairState& s, const Move& move) {
  if (make_of_cluster(s, move)) return;
  const Rank rank{move.who};
  const NodeId id = node(rank);
  PairWorker& w = worker(s, rank);
  switch (move.kind) {
    case Kind::begin:
      w.phase = Does::computing;
      return act(s, id, tell(agent(s, id).engine, [&](PairEngine& e) { return e.on_begun(rank); }));
    case Kind::arrive:
      w.phase = Does::waiting;
      w.met = false;
      return act(s, id, tell(agent(s, id).engine, [&](PairEngine& e) {
                   return e.on_arrival(rank, model_.partner(rank, w.t));
                 }));
    case Kind::complain: return die(s, rank);
    default: return;
  }
}

void PairShell::take(PairState& s, NodeId to, const PairMessage& m) {
  PairAgent& a = agent(s, to);
  if (!m.phase) {
    a.done.insert(node(m.meeting.initiator));
    return look_at_end(s, to);
  }
  if (m.phase == Phase::offer) a.visitors[m.meeting.initiator] = m.value;
  if (m.phase == Phase::mean) take_mean(s, m);
  act(s, to, tell(a.engine, [&](PairEngine& e) { return e.on_message(*m.phase, m.meeting); }));
  look_at_end(s, to);
}

/// Of a model that is lent for it, as it was; the very mean that the other one has.
void PairShell::take_mean(PairState& s, const PairMessage& m) {
  PairWorker& low = worker(s, m.meeting.low());
  expect(low.lent && low.lent->first == m.meeting && low.lent->second == low.model,
         name(m.meeting) + ": its mean comes to a model that is not lent for it, or has changed since");
  const auto half = s.half.find({m.meeting.initiator, *m.meeting.partner});
  expect((half != s.half.end() && half->second == m.value) || is_of_lost(s, m.meeting.low().value),
         name(m.meeting) + ": the two have different means");
  if (half != s.half.end()) s.half.erase(half);
  low.lent.reset();
  change(s, m.meeting.low(), m.value);
  if (m.meeting.low() == m.meeting.initiator) low.met = true;
}

void PairShell::work(PairState& s, NodeId id) {
  PairAgent& a = agent(s, id);
  const PairAgent::Work work = a.work.front();
  a.work.erase(a.work.begin());
  work.average ? average(s, id, work) : step(s, id, work.initiator);
  look_at_end(s, id);
}

void PairShell::average(PairState& s, NodeId id, const PairAgent::Work& work) {
  const Meeting& meeting = *work.average;
  PairAgent& a = agent(s, id);
  const bool both = node(meeting.low()) == id;
  const PairWorker& low = worker(s, meeting.low());
  if (!both && !may_be_lost(meeting.low().value) && !may_be_lost(meeting.high().value))
    expect(low.lent && low.lent->first == meeting && low.model == work.visitor,
           name(meeting) + ": averaged with another model than that of the lower");
  const PairValue mean{meeting.initiator, worker(s, meeting.initiator).t, 0};
  change(s, meeting.high(), mean);
  if (both) {
    change(s, meeting.low(), mean);
  } else {
    s.half[{meeting.initiator, *meeting.partner}] = mean;
    const auto visitor = a.visitors.find(meeting.initiator);
    if (visitor != a.visitors.end() && !spoils(s, PairMutation::gives_the_mean_to_one)) visitor->second = mean;
  }
  if (both || meeting.initiator == meeting.high()) worker(s, meeting.initiator).met = true;
  act(s, id, tell(a.engine, [&](PairEngine& e) { return e.on_averaged(meeting); }));
}

/// Once an iteration, when it has met its partner, unless that is gone.
void PairShell::step(PairState& s, NodeId id, Rank rank) {
  PairWorker& w = worker(s, rank);
  const std::string at = "iteration " + to_string(w.t) + " of worker " + to_string(rank) + ": ";
  const auto partner = model_.partner(rank, w.t);
  expect(w.phase == Does::waiting, at + "a step is added that was not done");
  expect(!w.lent, at + "a step is added to a model that is lent");
  expect(w.met || !partner || worker(s, *partner).dead || may_be_lost(partner->value) || may_be_lost(rank.value),
         at + "it has not met its partner, which lives");
  PairValue next = w.model;
  ++next.steps;
  change(s, rank, next);
  w.phase = w.t >= model_.last ? Does::over : Does::computing;
  w.t = w.t.next();
  if (w.phase == Does::over && !w.dead) agent(s, id).ended.insert(rank);
  act(s, id, tell(agent(s, id).engine, [&](PairEngine& e) { return e.on_stepped(rank); }));
}

void PairShell::change(PairState& s, Rank rank, const PairValue& value) {
  PairWorker& w = worker(s, rank);
  expect(!agent(s, node(rank)).gathered || w.dead || is_of_lost(s, rank.value),
         "the model of worker " + to_string(rank) + " changes when it is in the mean of all already");
  w.model = value;
}

// Actions of the core
// --------------------------------------------------------------------------------------------------------------------

void PairShell::act(PairState& s, NodeId id, const PairEngine::Actions& actions) {
  for (const auto& action : actions) std::visit([&](const auto& a) { carry_out(s, id, a); }, action);
}

void PairShell::carry_out(PairState& s, NodeId id, const PairEngine::Send& a) {
  PairMessage m{a.phase, a.meeting};
  PairAgent& from = agent(s, id);
  if (a.phase == Phase::offer) {
    PairWorker& low = worker(s, a.meeting.low());
    m.value = low.model;
    low.lent = {a.meeting, low.model};
  } else if (a.phase == Phase::mean) {
    const auto visitor = from.visitors.extract(a.meeting.initiator);
    expect(!visitor.empty(), name(a.meeting) + ": there is no mean to give");
    if (!visitor.empty()) m.value = visitor.mapped();
  }
  if (spoils(s, PairMutation::loses_a_message)) return;
  send(s, id, a.to, m);
}

void PairShell::carry_out(PairState& s, NodeId id, const PairEngine::Average& a) {
  PairAgent& here = agent(s, id);
  const auto visitor = here.visitors.find(a.meeting.initiator);
  const bool both = node(a.meeting.low()) == id;
  expect(both || visitor != here.visitors.end(), name(a.meeting) + ": the lower one's model is not here");
  here.work.push_back(
      {a.meeting, a.meeting.initiator, both || visitor == here.visitors.end() ? PairValue{} : visitor->second});
}

/// What was lent is back, or as it was.
void PairShell::carry_out(PairState& s, NodeId id, const PairEngine::Step& a) {
  worker(s, a.initiator).lent.reset();
  agent(s, id).work.push_back({{}, a.initiator});
  if (spoils(s, PairMutation::steps_twice)) agent(s, id).work.push_back({{}, a.initiator});
}

// Who is gone, and the end
// ---------------------------------------------------------------------------------------------------------------------

void PairShell::die(PairState& s, Rank rank) {
  const NodeId id = node(rank);
  worker(s, rank).dead = true;
  agent(s, id).ended.erase(rank);
  if (!spoils(s, PairMutation::forgets_the_dead))
    act(s, id, tell(agent(s, id).engine, [&](PairEngine& e) { return e.on_gone(rank); }));
  look_at_end(s, id);
}

void PairShell::end_last(PairState& s) {
  agent(s, last()).work.clear();
  for (int i = 0; i < workers(); ++i)
    if (node(Rank{i}) == last()) worker(s, Rank{i}).dead = true;
}

void PairShell::go_on_without(PairState& s, NodeId self) {
  PairAgent& a = agent(s, self);
  for (int i = 0; i < workers(); ++i) {
    PairWorker& w = worker(s, Rank{i});
    if (w.lent && node(Rank{i}) == self && node(w.lent->first.high()) == last()) w.lent.reset();
  }
  std::erase_if(s.half, [&](const auto& half) {
    const NodeId one = node(half.first.first), other = node(half.first.second);
    return (one == last() && other == self) || (one == self && other == last());
  });
  act(s, self, tell(a.engine, [&](PairEngine& e) { return e.on_node_gone(last()); }));
  std::erase_if(a.visitors, [&](const auto& visitor) { return node(visitor.first) == last(); });
  look_at_end(s, self);
}

void PairShell::look_at_end(PairState& s, NodeId id) {
  PairAgent& a = agent(s, id);
  if (a.gathered || (!a.engine->engine.idle() && mutation_ != PairMutation::ends_before_it_is_settled)) return;
  for (int i = 0; i < workers(); ++i)
    if (node(Rank{i}) == id && !worker(s, Rank{i}).dead && !a.ended.contains(Rank{i})) return;
  const auto nodes = others(s, id);
  if (!std::exchange(a.told, true)) {
    Rank own{0};
    while (node(own) != id) ++own.value;
    for (const NodeId to : nodes) send(s, id, to, PairMessage{{}, {own, {}}});
  }
  a.gathered = std::all_of(nodes.begin(), nodes.end(), [&](NodeId other) { return a.done.contains(other); });
}

void PairShell::check_end(const PairState& s) {
  bool somebody_rests = false;
  for (int i = 0; i < workers(); ++i) {
    const PairWorker& w = worker(s, Rank{i});
    const bool rests = w.paused && !w.dead;
    somebody_rests = somebody_rests || rests;
    expect(w.dead || rests || w.phase == Does::over || is_of_lost(s, i),
           "worker " + std::to_string(i) + " waits for ever at iteration " + to_string(w.t));
  }
  check_views(s);
  if (somebody_rests) return;
  for (std::int32_t n = 0; n < model_.nodes; ++n)
    expect((s.network.lost && NodeId{n} == last()) || agent(s, NodeId{n}).gathered,
           "agent " + std::to_string(n) + " never comes to the end");
  for (const auto& [meeting, mean] : s.half)
    expect(s.network.lost && (node(meeting.first) == last() || node(meeting.second) == last()),
           name({meeting.first, meeting.second}) + ": its mean came to one of two only");
}

}  // namespace paceline::explorer
