#include <algorithm>

#include "tests/sim/explorer/round_shell.h"

// What a shell does when the core asks for it.

namespace paceline::explorer {

using scheduler::Lateness;

namespace {

std::int64_t digits(const std::vector<std::optional<Version>>& versions) {
  std::int64_t number = 1;
  for (const auto& v : versions) number = number * 100 + (v ? v->value + 2 : 0);
  return number;
}

}  // namespace

void RoundShell::act(State& s, NodeId id, const RoundEngine::Actions& actions) {
  using AtOnce = Model::AtOnce;
  for (const auto& action : actions) {
    if (const auto* a = std::get_if<RoundEngine::Activate>(&action)) {
      send(s, {id, a->to, *a});
    } else if (const auto* c = std::get_if<RoundEngine::Count>(&action)) {
      send(s, {id, c->to, *c});
    } else if (const auto* g = std::get_if<RoundEngine::Gone>(&action)) {
      send(s, {id, g->to, *g});
    } else if (const auto* p = std::get_if<RoundEngine::SendPartial>(&action)) {
      carry_out(s, id, *p);
    } else if (const auto* v = std::get_if<RoundEngine::Verdict>(&action)) {
      carry_out(s, id, *v);
    } else if (const auto* b = std::get_if<RoundEngine::Abandon>(&action)) {
      if (!spoils(s, Mutation::forgets_to_abandon)) s.agents[index(id)].abandoned = b->version;
    } else if (const auto* admit = std::get_if<RoundEngine::Admit>(&action)) {
      Worker& w = s.workers[static_cast<std::size_t>(admit->rank.value)];
      w.comes_back = Worker::Return::admitted;
      w.exact = admit->after.has_value();
      w.after = admit->after.value_or(Version{-1});
      w.may_skip = admit->may_skip;
    } else if (const auto* l = std::get_if<RoundEngine::Leave>(&action)) {
      Worker& w = s.workers[static_cast<std::size_t>(l->rank.value)];
      expect(w.paused, "worker " + to_string(l->rank) + " leaves, which was not stopped");
      w.left = true;
      w.reports.clear();
    } else if (const auto* seal = std::get_if<RoundEngine::Seal>(&action);
               seal != nullptr && model_.at_once == AtOnce::seals) {
      carry_out(s, id, *seal);
    } else {
      s.agents[index(id)].work.push_back(action);
    }
  }
  while (model_.at_once == AtOnce::everything && !s.agents[index(id)].work.empty()) carry_out_next(s, id);
}

void RoundShell::carry_out_next(State& s, NodeId id) {
  auto& work = s.agents[index(id)].work;
  const auto action = work.front();
  work.erase(work.begin());
  if (const auto* seal = std::get_if<RoundEngine::Seal>(&action)) return carry_out(s, id, *seal);
  if (const auto* x = std::get_if<RoundEngine::Execute>(&action)) return carry_out(s, id, *x);
  carry_out(s, id, std::get<RoundEngine::Merge>(action));
}

void RoundShell::send(State& s, Message m) {
  if (s.loss_used && m.to == lost_agent()) return;
  if (std::holds_alternative<RoundEngine::Activate>(m.body)) {
    if (spoils(s, Mutation::loses_activations)) return;
    if (spoils(s, Mutation::duplicates_activations)) s.network.push_back(m);
  } else if (std::holds_alternative<RoundEngine::Count>(m.body)) {
    if (spoils(s, Mutation::loses_a_count)) return;
    if (spoils(s, Mutation::counts_twice)) s.network.push_back(m);
  } else if (std::holds_alternative<RoundEngine::Gone>(m.body)) {
    if (spoils(s, Mutation::hides_who_left)) return;
  } else {
    if (spoils(s, Mutation::loses_a_partial)) return;
    if (spoils(s, Mutation::duplicates_partials)) s.network.push_back(m);
    if (spoils(s, Mutation::mixes_up_partials)) {
      for (Content& c : m.sum) {
        if (c.tag >= 0) c.tag = static_cast<std::int8_t>(c.tag - 1);
      }
    }
  }
  s.network.push_back(m);
}

void RoundShell::carry_out(State& s, NodeId id, const RoundEngine::Seal& a) {
  if (spoils(s, Mutation::drops_a_seal)) return;
  check_seal(s, a);
  Agent& agent = s.agents[index(id)];
  const Key key{a.version, a.group};
  Contents sealed = publications(s, a.members);
  std::vector<std::optional<Version>> contributed;
  for (const Rank r : a.members) {
    Worker& w = s.workers[static_cast<std::size_t>(r.value)];
    Content& c = sealed[static_cast<std::size_t>(r.value)];
    if (abandons(a.version) && c.tag != a.version.value) c = {.tag = Content::kNothing};
    contributed.push_back(c.tag == Content::kNothing ? std::nullopt : std::optional(Version{c.tag}));
    expect(c.tag <= a.version.value, "a contribution from the future");
    if (!gives_once(Version{0})) continue;
    expect((w.contributed & c.gradients) == 0, "worker " + to_string(r) + " gives a gradient twice");
    w.contributed = static_cast<std::uint8_t>(w.contributed | c.gradients);
    if (c.gradients != 0 && spoils(s, Mutation::gives_a_gradient_twice)) continue;
    w.publication = {.tag = Content::kNothing};
  }
  for (std::size_t i = 0; i < s.workers.size(); ++i) {
    if (sealed[i].tag != Content::kAbsent) s.truth[key][i] = sealed[i];
  }
  s.truth.try_emplace(key);
  const bool all_fresh =
      std::any_of(contributed.begin(), contributed.end(), [&](const auto& c) { return c != a.version; });
  if (all_fresh && spoils(s, Mutation::calls_all_fresh))
    contributed.assign(contributed.size(), std::optional(a.version));
  if (!spoils(s, Mutation::answers_a_seal_unpinned)) agent.pinned[key] = sealed;
  act(s, id, step(agent, {kSealed, a.version.value, a.group, digits(contributed), s.now.count()}, [&](RoundEngine& e) {
        return e.on_sealed(a.version, a.group, contributed, Instant{s.now});
      }));
}

void RoundShell::carry_out(State& s, NodeId id, const RoundEngine::SendPartial& a) {
  Message m{id, a.to, a, {}};
  if (const auto it = s.agents[index(id)].pinned.find({a.version, a.group}); it != s.agents[index(id)].pinned.end())
    m.sum = it->second;
  send(s, m);
}

void RoundShell::carry_out(State& s, NodeId id, const RoundEngine::Execute& a) {
  const Key key{a.version, a.group};
  if (mutation_ == Mutation::does_not_pin || (mutation_ == Mutation::reuses_a_pinned_buffer && !a.others.empty())) {
    if (const auto it = s.agents[index(id)].pinned.find(key); it != s.agents[index(id)].pinned.end()) {
      std::vector<Rank> members = a.fresh;
      members.insert(members.end(), a.stale.begin(), a.stale.end());
      it->second = publications(s, members);
    }
  }
  check_sum(s, id, a);
  Agent& agent = s.agents[index(id)];
  agent.executed.insert(key);
  agent.pinned.erase(key);
  agent.partials.erase(key);
  const auto tell = [&] {
    const auto& actions = step(agent, {kExecuted, a.version.value, a.group, s.now.count()},
                               [&](RoundEngine& e) { return e.on_executed(a.version, a.group, {}, Instant{s.now}); });
    const Version done = agent.core->engine.done();
    std::erase_if(agent.executed, [&](const auto& entry) { return entry.first <= done; });
    act(s, id, actions);
  };
  if (spoils(s, Mutation::executes_twice)) agent.work.insert(agent.work.begin(), a);
  if (spoils(s, Mutation::reports_before_it_reduces)) {
    tell();
    return hand_out(s, id, a);
  }
  hand_out(s, id, a);
  tell();
}

void RoundShell::hand_out(State& s, NodeId id, const RoundEngine::Execute& a) {
  for (const Rank r : a.fresh) {
    Worker& w = s.workers[static_cast<std::size_t>(r.value)];
    w.delivered = a.version;
    w.retained = Version{-1};
  }
  for (const Rank r : a.stale) {
    if (!spoils(s, Mutation::retains_nothing)) s.workers[static_cast<std::size_t>(r.value)].retained = a.version;
  }
  if (abandons(a.version)) s.agents[index(id)].result = a.version;
}

void RoundShell::carry_out(State& s, NodeId id, const RoundEngine::Merge& a) {
  if (spoils(s, Mutation::drops_a_merge)) return;
  Worker& w = s.workers[static_cast<std::size_t>(a.rank.value)];
  const bool is_new = w.given_up == 0xff && w.contributed == 0;  // There is none: it had no part in that.
  expect(w.retained >= a.with || is_new, "worker " + to_string(a.rank) + " is to merge with version " +
                                             to_string(a.with) + ", whose sum was not kept for it");
  w.merged = a.with;
  if (spoils(s, Mutation::merges_with_an_older_sum)) w.merged = Version{a.with.value - 1};
  if (w.retained > a.with && spoils(s, Mutation::merges_with_the_newest_sum)) w.merged = w.retained;
  const bool drops = round(Version{0}).late == Lateness::drops;
  if (drops || (w.publication.gradients != 0 && spoils(s, Mutation::loses_a_late_gradient))) {
    if (drops) w.given_up = static_cast<std::uint8_t>(w.given_up | w.publication.gradients);
    w.publication = {.tag = Content::kNothing};
  }
  act(s, id, step(s.agents[index(id)], {kMerged, a.rank.value, s.now.count()}, [&](RoundEngine& e) {
        return e.on_merged(a.rank, Instant{s.now});
      }));
}

void RoundShell::carry_out(State& s, NodeId, const RoundEngine::Verdict& a) {
  if (abandons(a.own)) return;  // Workers look at the newest result instead.
  auto rank = static_cast<std::size_t>(a.rank.value);
  if (spoils(s, Mutation::loses_a_verdict)) return;
  if (spoils(s, Mutation::gives_a_verdict_to_another)) rank = (rank + 1) % s.workers.size();
  const int times = spoils(s, Mutation::gives_a_verdict_twice) ? 2 : 1;
  for (int i = 0; i < times; ++i) {
    Worker& w = s.workers[rank];
    check_verdict(s, w, a);
    if (w.comes_back == Worker::Return::restored) w.comes_back = Worker::Return::none;
    w.delivered = w.merged = Version{-1};
    begin(w, a.next);
    w.next_round = a.next_round;
    if (a.end) w.phase = Worker::Phase::over;
  }
}

}  // namespace paceline::explorer
