#include <algorithm>

#include "tests/sim/explorer/round_shell.h"

// What must hold, whatever the order of events.

namespace paceline::explorer {

using scheduler::Lateness;
using scheduler::Round;
using scheduler::Trigger;

bool RoundShell::has_arrived(const Worker& w, Version v) const {
  return w.t > v || (w.t == v && w.phase != Worker::Phase::computing);
}

std::int32_t RoundShell::arrived(const State& s, Version v) const {
  return static_cast<std::int32_t>(
      std::count_if(s.workers.begin(), s.workers.end(), [&](const Worker& w) { return has_arrived(w, v); }));
}

/// No more than are left.
std::int32_t RoundShell::quorum(const State& s, Version v) const {
  return static_cast<std::int32_t>(std::min<std::ptrdiff_t>(
      round(v).quorum,
      std::count_if(s.workers.begin(), s.workers.end(), [](const Worker& w) { return w.takes_part(); })));
}

/// Who has left without arriving has handed it on.
const Worker& RoundShell::initiator(const State& s, Version v) const {
  auto rank = static_cast<std::size_t>(round(v).initiator.value);
  for (std::size_t k = 0; k < s.workers.size(); ++k, rank = (rank + 1) % s.workers.size())
    if (s.workers[rank].takes_part() || has_arrived(s.workers[rank], v)) break;
  return s.workers[rank];
}

/// A round is sealed when its trigger is there, no earlier; some also when those who wait have lost patience.
void RoundShell::check_seal(const State& s, const RoundEngine::Seal& a) {
  const Round r = round(a.version);
  const std::string at = "version " + to_string(a.version) + " is sealed ";
  const bool out_of_patience = s.now >= RoundEngine::Options{}.patience_min && arrived(s, a.version) > 0;
  switch (r.trigger) {
    case Trigger::all_arrived:
      for (const Rank rank : a.members) {
        const Worker& w = s.workers[static_cast<std::size_t>(rank.value)];
        if (r.grace || !w.takes_part()) continue;
        const bool joins = r.late == Lateness::skips && w.t < a.version;
        expect(w.phase == Worker::Phase::waiting && (joins || w.publication.tag == a.version.value),
               at + "without worker " + to_string(rank) + ", which is awaited");
      }
      break;
    case Trigger::first_arrived: expect(arrived(s, a.version) > 0, at + "though nobody has arrived"); break;
    case Trigger::initiator:
      expect(has_arrived(initiator(s, a.version), a.version) || out_of_patience,
             at + "before its initiator has arrived");
      break;
    case Trigger::quorum:
      expect(arrived(s, a.version) >= quorum(s, a.version) || out_of_patience, at + "below its quorum");
      break;
  }
  if (r.late != Lateness::abandons && r.late != Lateness::finishes) return;
  for (const Rank rank : a.members)
    expect(agent_of(s, rank.value).abandoned >= a.version, at + "before its workers were told to abandon it");
}

/// Executed once, in order, from exactly what every member had published at its seal; fresh is who gave this version.
void RoundShell::check_sum(State& s, NodeId id, const RoundEngine::Execute& a) {
  const Agent& agent = s.agents[index(id)];
  const Key key{a.version, a.group};
  const std::string at = "agent " + to_string(id) + ", version " + to_string(a.version) + ": ";
  expect(agent.core->engine.done() < a.version && !agent.executed.contains(key), at + "executed twice");
  expect(a.sync == (round(a.version).kind == Round::Kind::sync), at + "a sync is taken for none, or the reverse");
  const auto mine = agent.pinned.find(key);
  expect(mine != agent.pinned.end(), at + "executed before it was sealed");
  if (!violation_.empty()) return;
  Contents sum = mine->second;
  const auto remote = agent.partials.find(key);
  for (const NodeId other : a.others) {
    const bool here = remote != agent.partials.end() && remote->second.contains(other);
    expect(here, at + "executed without the partial of agent " + to_string(other));
    if (!here) return;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      if (remote->second.at(other)[i].tag != Content::kAbsent) sum[i] = remote->second.at(other)[i];
    }
  }
  expect(is_as_sealed(s, id, key, sum), at + "averaged other contributions than those that were sealed");
  for (std::size_t i = 0; i < s.workers.size(); ++i) {
    bool member = a.sync;
    if (!a.sync) {
      const auto group = model_.answers.groups(a.version)[static_cast<std::size_t>(a.group)];
      member = std::count(group.begin(), group.end(), Rank{static_cast<std::int32_t>(i)}) > 0;
    }
    const bool present = sum[i].tag != Content::kAbsent;
    const Worker& w = s.workers[i];
    const bool is_new = a.version <= w.after || w.comes_back == Worker::Return::restored;
    const bool may_lack = !w.takes_part() || is_new || (model_.returns && w.given_up == 0xff && !w.exact);
    expect(member ? present || may_lack : !present, at + "its group is not the plan's");
  }
  const auto tag = [&](Rank r) { return sum[static_cast<std::size_t>(r.value)].tag; };
  const auto joins = [&](Rank r) {
    const Worker& w = s.workers[static_cast<std::size_t>(r.value)];
    return round(a.version).late == Lateness::skips && w.phase == Worker::Phase::waiting && w.t < a.version;
  };
  for (const Rank r : a.fresh) expect(tag(r) == a.version.value || joins(r), at + "a stale worker is taken for fresh");
  for (const Rank r : a.stale) expect(tag(r) != a.version.value || joins(r), at + "a fresh worker is taken for stale");
}

/// A lost agent's part is in it for all that are left, or for none.
bool RoundShell::is_as_sealed(State& s, NodeId id, const Key& key, const Contents& sum) {
  Contents all = s.truth.at(key);
  if (!model_.loss || id == lost_agent()) return sum == all;
  bool gives = false, counts = false;
  for (int i = 0; i < static_cast<int>(s.workers.size()); ++i) {
    if (node(i) != lost_agent()) continue;
    gives = gives || all[static_cast<std::size_t>(i)].tag != Content::kAbsent;
    counts = counts || sum[static_cast<std::size_t>(i)].tag != Content::kAbsent;
    if (s.loss_used) all[static_cast<std::size_t>(i)] = sum[static_cast<std::size_t>(i)];
  }
  if (!gives && !counts) return sum == all;
  return sum == all && s.counted.try_emplace(key, counts).first->second == counts;
}

/// It waits, the result of its iteration lies in its window, and it goes on with its next one.
void RoundShell::check_verdict(const State& s, const Worker& w, const RoundEngine::Verdict& a) {
  if (!w.takes_part()) return;
  const std::string at = "the verdict on iteration " + to_string(a.own) + " of worker " + to_string(a.rank) + ": ";
  expect(w.phase == Worker::Phase::waiting, at + "the worker does not wait");
  const bool skips = round(Version{0}).late == Lateness::skips || round(model_.last).late == Lateness::skips;
  expect(a.own == w.t || (skips && a.own > w.t), at + "the worker is at iteration " + to_string(w.t));
  const bool passes = skips || (w.given_up == 0xff && !a.fresh);
  expect(passes ? a.next > w.t : a.next == w.t.next(), at + "it goes on with iteration " + to_string(a.next));
  if (w.given_up == 0xff && !a.fresh && !a.averaged) return;  // It came when that had gone on without it.
  const bool due = round(a.own).kind != Round::Kind::none || !a.fresh;
  expect(a.averaged == due, at + (due ? "there was a round" : "there was no round"));
  if (a.averaged && a.fresh) expect(w.delivered == a.own, at + "the mean is not in its window");
  if (a.averaged && !a.fresh) {
    const bool own = round(w.t).merges_own_version;
    expect(own ? w.merged == w.t : w.merged >= w.t, at + "it was merged with version " + to_string(w.merged));
  }
  if (a.end) expect(agent_of(s, a.rank.value).core->engine.done().next() >= model_.last, at + "the job is not over");
}

/// In every state.
void RoundShell::check(const State& s) {
  const test::TestPlan plan(model_.answers);
  for (int i = 0; i < static_cast<int>(s.workers.size()); ++i) {
    const RoundEngine& e = agent_of(s, i).core->engine;
    if (e.done() >= model_.last) continue;
    const Version open = plan.next_round(e.done().next());
    expect(open >= model_.last || s.workers[static_cast<std::size_t>(i)].t <= plan.next_round(open.next()).next(),
           "worker " + std::to_string(i) + " is ahead of its agent");
  }
  for (const NodeId a : model_.node_of) {
    for (const NodeId b : model_.node_of) {
      if (s.loss_used && (a == lost_agent() || b == lost_agent())) continue;
      const Version done = s.agents[index(a)].core->engine.done(), other = s.agents[index(b)].core->engine.done();
      if (done <= other || round(done).kind != Round::Kind::sync) continue;
      expect(plan.next_round(other.next()) >= done, "a sync was executed that another agent cannot have sealed");
    }
  }
}

/// Nobody waits for somebody who is stopped, unless the round is one that waits for it.
bool RoundShell::may_wait(const State& s, int rank) const {
  const Version t = s.workers[static_cast<std::size_t>(rank)].t;
  const auto waiting = agent_of(s, rank).core->engine.waiting();
  if (waiting && round(waiting->version).trigger == Trigger::all_arrived) return true;
  const Round r = round(t);
  if (r.trigger == Trigger::all_arrived && agent_of(s, rank).core->engine.done() < t) return true;
  const auto is_there = [&](const Worker& w) {
    const bool lost =
        s.loss_used && node(static_cast<int>(&w - s.workers.data())) == lost_agent();  // Its word may be, too.
    return has_arrived(w, t) && !lost && (w.reports.empty() || w.noticed);
  };
  if (r.trigger == Trigger::quorum) {
    const bool in_grace = r.grace && s.agents.front().core->engine.next_deadline();
    return in_grace || std::count_if(s.workers.begin(), s.workers.end(), is_there) < quorum(s, t);
  }
  return r.trigger == Trigger::initiator && !is_there(initiator(s, t));
}

void RoundShell::check_quiet(const State& s) {
  for (int i = 0; i < static_cast<int>(s.workers.size()); ++i) {
    const Worker& w = s.workers[static_cast<std::size_t>(i)];
    if (!w.takes_part() || w.paused || w.phase == Worker::Phase::over) continue;
    expect(may_wait(s, i),
           "worker " + std::to_string(i) + " waits at iteration " + to_string(w.t) + ", where nobody is waited for");
  }
}

void RoundShell::check_end(const State& s) {
  for (int i = 0; i < static_cast<int>(s.workers.size()); ++i) {
    const Worker& w = s.workers[static_cast<std::size_t>(i)];
    if (!w.takes_part() || w.paused) continue;
    if (w.phase == Worker::Phase::over) {
      if (round(Version{0}).late != Lateness::accumulates || w.given_up == 0xff) continue;
      const unsigned given = w.contributed | w.given_up | w.publication.gradients;
      unsigned produced = 0;
      for (Version v{0}; v <= model_.last; v = v.next()) {
        if (gives_once(v)) produced |= 1U << static_cast<unsigned>(v.value);
      }
      expect(given == produced, "a gradient of worker " + std::to_string(i) + " is lost");
      continue;
    }
    expect(false, "worker " + std::to_string(i) + " hangs at iteration " + to_string(w.t));
  }
  for (const Agent& agent : s.agents)
    expect(agent.core->engine.done() == model_.last || (s.loss_used && agent.core->self == lost_agent()),
           "an agent stops after version " + to_string(agent.core->engine.done()));
}

}  // namespace paceline::explorer
