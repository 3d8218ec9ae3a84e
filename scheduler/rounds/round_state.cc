#include "scheduler/rounds/round_state.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/base/check.h"
#include "scheduler/rounds/activation_tree.h"

namespace paceline::scheduler {
namespace {

Version before(Version v) { return Version{v.value - 1}; }

}  // namespace

RoundEngine::State::State(Options o) : options(std::move(o)) {
  done = fired = told_to_finish = before(options.first);
  const std::set<NodeId> nodes(options.node_of.begin(), options.node_of.end());
  agents.assign(nodes.begin(), nodes.end());
  for (std::size_t i = 0; i < options.node_of.size(); ++i) {
    if (options.node_of[i] != options.self) continue;
    const Rank rank{static_cast<std::int32_t>(i)};
    workers[rank] = Worker{.rank = rank, .reported = done, .engaged = done, .fresh_at = done, .executed = done};
  }
}

Worker* RoundEngine::State::worker(Rank rank) {
  const auto it = workers.find(rank);
  return it == workers.end() ? nullptr : &it->second;
}

GroupInFlight* RoundEngine::State::group_in_flight(Version v, std::int32_t index) {
  if (!flight || flight->version != v) return nullptr;
  for (GroupInFlight& g : flight->groups) {
    if (g.index == index) return &g;
  }
  return nullptr;
}

std::optional<Version> RoundEngine::State::open_version(const RoundPlan& plan) const {
  if (done >= options.last) return std::nullopt;
  const Version v = plan.next_round(done.next());
  return v <= options.last ? std::optional(v) : std::nullopt;
}

void RoundEngine::State::find_gate(const RoundPlan& plan, Instant now) {
  gate.reset();
  for (auto v = open_version(plan); v && *v <= options.last; v = plan.next_round(v->next())) {
    const Round round = plan.round(*v);
    if (round.trigger == Trigger::all_arrived) {
      gate = v;
      wait_at_gate_since(now);  // Somebody may be there already; otherwise hear() says when.
      return;
    }
    if (round.kind == Round::Kind::sync) return;  // The plan need not know further.
  }
}

void RoundEngine::State::hear(Version v, Instant now) {
  if (v <= fired) return;
  if (gate && fired < *gate && v >= *gate) wait_at_gate_since(now);
  fired = v;
}

void RoundEngine::State::wait_at_gate_since(Instant now) {
  gate_since = now;
  gate_median = steps.get();
}

std::vector<NodeId> RoundEngine::State::next_to_hear(NodeId root) const {
  std::vector<NodeId> next;
  if (!lost.empty()) {
    if (root == options.self)
      std::copy_if(agents.begin(), agents.end(), std::back_inserter(next),
                   [this](NodeId agent) { return agent != options.self && !lost.contains(agent); });
    return next;
  }
  const auto place = [this](NodeId agent) {
    const auto at = std::lower_bound(agents.begin(), agents.end(), agent);
    return NodeId{at != agents.end() && *at == agent ? static_cast<std::int32_t>(at - agents.begin()) : -1};
  };
  for (const NodeId child :
       activation_children(place(root), place(options.self), static_cast<std::int32_t>(agents.size())))
    next.push_back(agents[static_cast<std::size_t>(child.value)]);
  return next;
}

void RoundEngine::State::forward(NodeId root, Version v, Actions& out) {
  const auto children = next_to_hear(root);
  if (children.empty()) return;
  // Versions of one root rise along one tree, so the highest that was forwarded stands for all before it.
  Version& highest = forwarded.try_emplace(root, before(options.first)).first->second;
  if (v <= highest) return;
  highest = v;
  for (NodeId to : children) out.push_back(Activate{to, root, v});
}

void RoundEngine::State::arrive(Worker& w, Version t, const RoundPlan& plan, Instant now, Actions& out) {
  const bool missed = t <= w.executed;
  if (missed && (w.fresh_at == t || lateness == Lateness::abandons)) {  // Sealed while the arrival was under way.
    const Version next = lateness == Lateness::abandons ? w.executed.next() : t.next();
    release(w, t, next, {.fresh = true, .averaged = true}, plan, now, out);
  } else if (may_join(w, t, plan)) {
    w.phase = Phase::parked;
    w.engaged = *gate;
  } else if (missed) {
    merge(w, plan, out);
  } else if (flight && t <= flight->version) {
    // While the seal is under way it is undecided whether the publication is in it: seal() tells.
    w.phase = t == flight->version && (!sealed_in_flight(w.rank) || w.fresh_at == t) ? Phase::parked : Phase::late;
    w.engaged = t;
  } else if (plan.round(t).kind == Round::Kind::none) {
    release(w, t, t.next(), {}, plan, now, out);
  } else {
    w.phase = Phase::parked;
    w.engaged = t;
    if (t > fired) announce(w, t, plan, now, out);
  }
}

void RoundEngine::State::announce(const Worker& w, Version t, const RoundPlan& plan, Instant now, Actions& out) {
  const Round round = plan.round(t);
  if (round.trigger == Trigger::initiator && initiator(round) != w.rank) return;
  if (round.trigger != Trigger::quorum) {
    fire(t, now, out);
  } else if (options.self == counter()) {
    count(t, plan, now, out);
  } else {
    out.push_back(Count{counter(), t});
  }
}

NodeId RoundEngine::State::counter() const {
  return *std::find_if(agents.begin(), agents.end(), [this](NodeId agent) { return !lost.contains(agent); });
}

void RoundEngine::State::announce_to_counter(const RoundPlan& plan, Instant now, Actions& out) {
  for (const auto& [rank, w] : workers)
    if (w.phase == Phase::parked && w.engaged > fired && plan.round(w.engaged).trigger == Trigger::quorum)
      announce(w, w.engaged, plan, now, out);
}

Rank RoundEngine::State::initiator(const Round& round) const {
  const auto all = static_cast<std::int32_t>(options.node_of.size());
  Rank rank = round.initiator;
  for (std::int32_t k = 0; k < all && gone.contains(rank); ++k) rank = Rank{(rank.value + 1) % all};
  return rank;
}

void RoundEngine::State::leave(Worker& w, const RoundPlan& plan, Instant now, Actions& out) {
  w.phase = Phase::left;
  w.enters_after.reset();
  if (!plan.asks_who_is_left()) return;
  for (const NodeId to : agents)
    if (to != options.self && !lost.contains(to)) out.push_back(Gone{to, w.rank});
  note_gone(w.rank, plan, now, out);
}

void RoundEngine::State::note_gone(Rank rank, const RoundPlan& plan, Instant now, Actions& out) {
  if (!gone.insert(rank).second) return;
  if (!counted.empty()) fire_if_counted(counted.rbegin()->first, plan, now, out);
  for (const auto& [other, w] : workers) {
    const bool waits = w.phase == Phase::parked && w.engaged == w.reported && w.engaged > fired;
    if (waits && plan.round(w.engaged).trigger == Trigger::initiator) announce(w, w.engaged, plan, now, out);
  }
}

bool RoundEngine::State::may_join(const Worker& w, Version t, const RoundPlan& plan) const {
  if (!gate || t >= *gate || fired < *gate) return false;
  if (flight && (flight->version == *gate || (w.fresh_at == t && t == flight->version))) return false;
  return plan.round(*gate).late == Lateness::skips;
}

bool RoundEngine::State::sealed_in_flight(Rank rank) const {
  return std::any_of(flight->groups.begin(), flight->groups.end(), [&](const GroupInFlight& g) {
    return g.stage != GroupInFlight::Stage::sealing && std::count(g.local.begin(), g.local.end(), rank) > 0;
  });
}

void RoundEngine::State::merge(Worker& w, const RoundPlan& plan, Actions& out) {
  w.phase = Phase::merging;
  w.merges = true;
  const bool own = plan.round(w.reported).merges_own_version;
  out.push_back(Merge{w.rank, w.reported, own ? w.reported : w.executed});
}

void RoundEngine::State::advance(const RoundPlan& plan, Instant now, Actions& out, Deadlines deadlines) {
  if (const auto at = fires_without_at(plan); deadlines == Deadlines::look && at && now >= *at) {
    const Version v = *open_version(plan);
    forward(options.self, v, out);
    hear(v, now);
  }
  while (!flight) {
    const auto v = open_version(plan);
    if (!v || fired < *v) return;
    const Round round = plan.round(*v);
    if (round.late == Lateness::finishes && told_to_finish < *v) {
      told_to_finish = *v;
      out.push_back(Abandon{*v});
    }
    if (round.trigger == Trigger::all_arrived && !gate_opens(*v, round, plan, now, deadlines, out)) return;
    begin(*v, round, plan, out);
    if (flight->groups.empty()) {  // No worker of the job lives here.
      flight.reset();
      done = *v;
      find_gate(plan, now);
    }
  }
}

bool RoundEngine::State::is_missing(Rank rank, Version v) const {
  const auto it = workers.find(rank);
  if (it == workers.end() || !takes_part(it->second)) return false;
  return it->second.phase != Phase::parked || it->second.engaged != v;
}

bool RoundEngine::State::gate_opens(Version v, const Round& round, const RoundPlan& plan, Instant now,
                                    Deadlines deadlines, Actions& out) {
  // Most of the time the one that was missed last is still missing.
  if (deadlines == Deadlines::pass_by && is_missing(missed_last, v)) return false;
  bool opens = true;
  for (Rank rank : missing_at(v)) {
    missed_last = rank;
    Worker& w = workers.at(rank);
    if (deadlines == Deadlines::pass_by || now < waited_until(w, round)) {
      opens = false;
    } else if (!grace(round)) {
      out.push_back(Leave{rank, v, now - silent_since(w), now - waited_since(w)});
      leave(w, plan, now, out);
    }
  }
  return opens;
}

void RoundEngine::State::begin(Version v, const Round& round, const RoundPlan& plan, Actions& out) {
  flight = Flight{v, round, {}};
  if (round.late != Lateness::waits) lateness = round.late;
  std::vector<std::vector<Rank>> groups;
  if (round.kind == Round::Kind::group) {
    groups = plan.groups(v);
  } else {
    groups.emplace_back();
    for (std::size_t i = 0; i < options.node_of.size(); ++i) groups[0].push_back(Rank{static_cast<std::int32_t>(i)});
  }
  if (round.late == Lateness::abandons) out.push_back(Abandon{v});
  for (std::size_t index = 0; index < groups.size(); ++index) {
    GroupInFlight g;
    g.index = static_cast<std::int32_t>(index);
    std::set<NodeId> nodes;
    for (Rank rank : groups[index]) {
      const bool known = rank.value >= 0 && static_cast<std::size_t>(rank.value) < options.node_of.size();
      PACELINE_CHECK(known, "a plan's group names a rank that the job has not");
      const NodeId node = options.node_of[static_cast<std::size_t>(rank.value)];
      if (node != options.self) {
        nodes.insert(node);
        continue;
      }
      g.local.push_back(rank);
      if (takes_part(workers.at(rank))) g.members.push_back(rank);
    }
    if (g.local.empty()) continue;
    std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(g.others),
                 [&](NodeId node) { return gives(node, v, g.index); });
    out.push_back(Seal{v, g.index, g.members});
    flight->groups.push_back(std::move(g));
  }
}

void RoundEngine::State::seal(GroupInFlight& g, const std::vector<std::optional<Version>>& contributed) {
  const Version v = flight->version;
  g.stage = GroupInFlight::Stage::sealed;
  for (std::size_t i = 0; i < g.members.size(); ++i) {
    Worker& w = workers.at(g.members[i]);
    const bool joined = w.phase == Phase::parked && w.engaged == v && w.reported != v;
    const bool elsewhere = w.phase == Phase::parked && w.engaged != v;
    if (joined || (contributed[i] == v && !elsewhere)) {
      w.fresh_at = v;
      g.fresh.push_back(w.rank);
    } else {
      g.stale.push_back(w.rank);
      if (w.phase == Phase::parked && w.engaged == v) w.phase = Phase::late;  // Its publication came after the seal.
    }
  }
}

void RoundEngine::State::execute_where_complete(Actions& out) {
  if (!flight) return;
  for (GroupInFlight& g : flight->groups) {
    if (g.stage != GroupInFlight::Stage::sealed) continue;
    const auto it = partials.find({flight->version, g.index});
    const bool complete = std::all_of(g.others.begin(), g.others.end(),
                                      [&](NodeId n) { return it != partials.end() && it->second.contains(n); });
    if (!complete) continue;
    g.stage = GroupInFlight::Stage::executing;
    out.push_back(
        Execute{flight->version, g.index, flight->round.kind == Round::Kind::sync, g.fresh, g.stale, g.others});
  }
}

void RoundEngine::State::leave_out_lost_nodes() {
  if (!flight) return;
  for (GroupInFlight& g : flight->groups)
    if (g.stage <= GroupInFlight::Stage::sealed)
      std::erase_if(g.others, [&](NodeId node) { return !gives(node, flight->version, g.index); });
}

bool RoundEngine::State::gives(NodeId node, Version v, std::int32_t group) const {
  const auto given = partials.find({v, group});
  return !lost.contains(node) || (given != partials.end() && given->second.contains(node));
}

bool RoundEngine::State::all_executed() const {
  return std::all_of(flight->groups.begin(), flight->groups.end(),
                     [](const GroupInFlight& g) { return g.stage == GroupInFlight::Stage::executed; });
}

void RoundEngine::State::release_members(GroupInFlight& g, const RoundPlan& plan, Instant now, Actions& out) {
  const Version v = flight->version;
  for (Rank rank : g.local) workers.at(rank).executed = v;
  for (Rank rank : g.local) {
    Worker& w = workers.at(rank);
    if (w.phase == Phase::parked && w.engaged == v) {
      release(w, v, v.next(), {.fresh = true, .averaged = true, .skipped = v.value - w.reported.value}, plan, now, out);
    }
  }
  for (Rank rank : g.local) {
    Worker& w = workers.at(rank);
    if (w.phase != Phase::late) continue;
    if (lateness == Lateness::abandons) {  // It takes the result as it is: gradients do not merge.
      release(w, v, v.next(), {.fresh = true, .averaged = true}, plan, now, out);
    } else {
      merge(w, plan, out);
    }
  }
}

void RoundEngine::State::close_version(const RoundPlan& plan, Instant now) {
  done = flight->version;
  flight.reset();
  partials.erase(partials.begin(), partials.upper_bound({done, INT32_MAX}));
  counted.erase(counted.begin(), counted.upper_bound(done));
  if (!gate || done >= *gate) find_gate(plan, now);
}

void RoundEngine::State::release(Worker& w, Version own, Version next, Outcome outcome, const RoundPlan& plan,
                                 Instant now, Actions& out) {
  w.phase = Phase::computing;
  w.word = now;
  const bool over =
      w.executed >= options.last && !(options.late_finish_their_iterations && lateness != Lateness::skips);
  Verdict verdict{.rank = w.rank,
                  .own = own,
                  .next = next,
                  .next_round = next,
                  .fresh = outcome.fresh,
                  .averaged = outcome.averaged,
                  .end = over || next > options.last,
                  .skipped = outcome.skipped,
                  .lr_may_decay = plan.lr_may_decay()};
  if (!verdict.end && !plan.publishes_every_iteration()) verdict.next_round = plan.next_round(next);
  out.push_back(verdict);
}

}  // namespace paceline::scheduler
