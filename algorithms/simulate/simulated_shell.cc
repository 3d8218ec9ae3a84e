#include <algorithm>

#include "algorithms/simulate/simulation.h"
#include "runtime/base/check.h"

// Carries out what the round engines ask for: at once, in memory.

namespace paceline::simulate {

void Simulation::act(NodeId id, Engine::Actions actions) {
  for (Engine::Action& a : actions) todo_.push_back({id, std::move(a)});
  drain();
}

void Simulation::drain() {
  while (!todo_.empty()) {
    const Todo todo = std::move(todo_.front());
    todo_.pop_front();
    if (const auto* m = std::get_if<Message>(&todo.what)) {
      hand_over(*m);
    } else {
      std::visit([&](const auto& a) { carry_out(todo.node, a); }, std::get<Engine::Action>(todo.what));
    }
  }
}

void Simulation::send(Message message) {
  const int copies = world_.copies ? world_.copies() : 1;
  for (int i = 0; i < copies; ++i) {
    ++messages_;
    const Duration d = world_.latency ? world_.latency(message.from, message.to) : Duration::zero();
    if (d > Duration::zero()) {
      schedule(now_ + d, message);
    } else {
      todo_.push_back({message.to, message});
    }
  }
}

void Simulation::hand_over(const Message& m) {
  Node& n = node(m.to);
  Engine::Actions actions;
  if (const auto* a = std::get_if<Engine::Activate>(&m.body)) {
    actions = n.engine->on_activation(a->root, m.from, a->version, now_);
  } else if (const auto* c = std::get_if<Engine::Count>(&m.body)) {
    actions = n.engine->on_count(c->version, now_);
  } else if (const auto* g = std::get_if<Engine::Gone>(&m.body)) {
    actions = n.engine->on_gone_elsewhere(g->rank, now_);
  } else {
    const auto& p = std::get<Engine::SendPartial>(m.body);
    if (p.version > n.engine->done()) n.partials[{p.version, p.group}][m.from] = m.partial;
    actions = n.engine->on_partial(m.from, p.version, p.group, now_);
  }
  for (Engine::Action& a : actions) todo_.push_back({m.to, std::move(a)});
}

void Simulation::carry_out(NodeId id, const Engine::Activate& a) { send({id, a.to, a, nullptr}); }

void Simulation::carry_out(NodeId id, const Engine::Count& a) { send({id, a.to, a, nullptr}); }

void Simulation::carry_out(NodeId id, const Engine::Gone& a) { send({id, a.to, a, nullptr}); }

void Simulation::carry_out(NodeId id, const Engine::SendPartial& a) {
  send({id, a.to, a, node(id).sealed.at({a.version, a.group})});
}

void Simulation::carry_out(NodeId id, const Engine::Seal& a) {
  Node& n = node(id);
  auto pinned = std::make_shared<Contributions>();
  std::map<Rank, Version> tags;
  std::map<Rank, Vector> numbers;
  std::vector<std::optional<Version>> contributed;
  for (Rank rank : a.members) {
    std::optional<Contribution> c = contribution_of(worker(rank), a);
    contributed.push_back(c ? std::optional(c->tag) : std::nullopt);
    if (!c) continue;
    if (world_.keeps_events) {
      tags[rank] = c->tag;
      numbers[rank] = c->numbers;
    }
    pinned->emplace(rank, std::move(*c));
  }
  n.sealed[{a.version, a.group}] = std::move(pinned);
  log(event::Sealed{id, a.version, a.group, std::move(tags), std::move(numbers)});
  act(id, n.engine->on_sealed(a.version, a.group, contributed, now_));
}

std::optional<Simulation::Contribution> Simulation::contribution_of(Worker& w, const Engine::Seal& a) {
  if (!abandons()) {
    // What was published before the last average is in it.
    if (weighs_by_samples() && w.published->tag <= node_of(w.rank).engine->done()) return std::nullopt;
    const auto late = rules_.strategy.tiers.front().late;
    const bool once = late == scheduler::Lateness::accumulates || late == scheduler::Lateness::drops;
    return once ? std::exchange(w.published, std::nullopt) : w.published;  // No gradient counts twice.
  }
  // What is finished of this very update, and nothing older.
  const std::int64_t done = w.phase == Worker::Phase::dead ? 0 : batches_done(w, a.version);
  if (w.phase == Worker::Phase::computing && w.t == a.version) {
    const Duration each = world_.compute(w.rank, w.t);
    settle(w);
    computed_[static_cast<std::size_t>(w.rank.value)] += each * done;
    if (w.started < now_) {  // The mini-batch in flight is finished in vain.
      const std::int64_t begun = (active_time(w, w.started, now_) + each - Duration(1)) / each;
      w.started = active_end(w, w.started, begun * each);
      w.in_vain = begun > done ? each : Duration::zero();
      ++w.generation;
    }
  }
  if (done == 0) return std::nullopt;
  auto [gradient, loss] = learner_.gradient(w.rank, a.version, w.model);
  for (double& g : gradient) g *= static_cast<double>(done) * weighing_.of_unfinished(done);
  return Contribution{.tag = a.version, .numbers = std::move(gradient), .loss = loss, .batches = done};
}

void Simulation::carry_out(NodeId id, const Engine::Execute& a) {
  const Duration cost = travel(id, a);
  if (cost > Duration::zero()) {
    schedule(now_ + cost, Average{id, a});
  } else {
    execute(id, a);
  }
}

void Simulation::execute(NodeId id, const Engine::Execute& a) {
  Node& n = node(id);
  const Key key{a.version, a.group};
  const auto own = n.sealed.at(key);
  Contributions gathered;
  if (!a.others.empty()) gathered = *own;
  for (NodeId other : a.others) {
    const auto& partial = *n.partials.at(key).at(other);
    gathered.insert(partial.begin(), partial.end());
  }
  const Contributions& all = a.others.empty() ? *own : gathered;
  scheduler::RoundSums sums;
  const auto result = std::make_shared<const Result>(average(id, a, all, sums));
  if (world_.keeps_events) {
    std::map<Rank, Version> tags;
    for (const auto& [rank, c] : all) tags[rank] = c.tag;
    log(event::Executed{id, a.version, a.group, tags, result->mean, a.fresh, a.stale});
  }
  const bool ends_updates = abandons();
  for (Rank rank : a.fresh) worker(rank).delivered = result;
  const bool keeps_all = n.engine->plan().round(a.version).merges_own_version;
  for (Rank rank : a.stale) {
    if (ends_updates) worker(rank).delivered = result;
    if (!keeps_all) worker(rank).retained.clear();
    worker(rank).retained[a.version] = result;
  }
  if (rules_.mixing) {
    if (a.version > mixed_) mix_models(all, a.version);  // The first agent does it for all.
    for (const auto* ranks : {&a.fresh, &a.stale}) {
      for (Rank rank : *ranks) {
        const Mixture& mixture = mixtures_[static_cast<std::size_t>(rank.value)];
        Result mixed = *result;
        mixed.mean = mixture.model;
        mixed.members = mixture.members;
        mixed.period = rules_.strategy.tiers.back().period.steps;
        worker(rank).delivered = std::make_shared<const Result>(std::move(mixed));
      }
    }
  }
  if (a.sync) synced_ = a.version;
  auto actions = n.engine->on_executed(a.version, a.group, sums, now_);
  if (ends_updates) {
    std::vector<Rank> members = a.fresh;
    members.insert(members.end(), a.stale.begin(), a.stale.end());
    std::sort(members.begin(), members.end());
    for (Rank rank : members) end_update(worker(rank), a, all);
  }
  n.sealed.erase(key);
  n.partials.erase(key);
  act(id, std::move(actions));
}

void Simulation::carry_out(NodeId id, const Engine::Merge& a) {
  Worker& w = worker(a.rank);
  log(event::Merged{a.rank, a.own, a.with});
  const auto kept = w.retained.find(a.with);
  PACELINE_CHECK(kept != w.retained.end(), "a late worker merges with a sum that its node has kept");
  merge(w, *kept->second);
  act(id, node(id).engine->on_merged(a.rank, now_));
}

void Simulation::carry_out(NodeId id, const Engine::Verdict& a) {
  Worker& w = worker(a.rank);
  if (abandons() || w.phase != Worker::Phase::waiting) return;  // end_update() has done it all; or it is dead.
  std::int64_t period = node(id).engine->plan().period();
  Members group{w.rank};
  if (a.averaged && a.fresh) {
    PACELINE_CHECK(w.delivered && w.delivered->version == a.own,
                   "a present worker goes on with the result of its own version");
    group = w.delivered->members;
    period = w.delivered->period;
    take(w, *w.delivered);
  } else if (a.averaged) {
    const auto& plan = node(id).engine->plan();
    const auto kept = plan.round(a.own).merges_own_version ? w.retained.find(a.own) : std::prev(w.retained.end());
    group = kept->second->members;
    if (std::find(group.begin(), group.end(), w.rank) == group.end()) {
      std::vector<Rank> more(group.begin(), group.end());
      more.insert(std::upper_bound(more.begin(), more.end(), w.rank), w.rank);
      group = std::move(more);
    }
  }
  log(event::WentOn{w.rank, a.own, a.next, a.fresh, a.averaged, a.end, now_ - w.arrived});
  add_row(w, a.own, a.fresh, std::move(group), period, w.batches);
  if (a.end) {
    w.phase = Worker::Phase::ended;
    return;
  }
  w.next_round = a.next_round;
  begin(w, a.next);
}

void Simulation::carry_out(NodeId id, const Engine::Abandon& a) {
  log(event::Abandoned{id, a.version});
  if (abandons()) return;
  // The mini-batch under way counts, and is waited for.
  for (Worker& w : workers_) {
    if (id_of(w.rank) != id || w.phase != Worker::Phase::computing || w.t != a.version) continue;
    const Duration each = world_.compute(w.rank, w.t);
    const std::int64_t begun = (active_time(w, w.started, now_) + each - Duration(1)) / each;
    w.batches = std::clamp<std::int64_t>(begun, 1, w.batches);
    schedule(active_end(w, w.started, each * w.batches), Finish{w.rank, ++w.generation});
  }
}

void Simulation::carry_out(NodeId, const Engine::Leave& a) {
  log(event::Left{a.rank, a.version});
  worker(a.rank).phase = Worker::Phase::dead;
}

std::int64_t Simulation::batches_done(const Worker& w, Version v) const {
  if (w.t != v) return 0;
  if (w.phase == Worker::Phase::waiting) return w.batches;
  const Duration each = world_.compute(w.rank, v);
  return std::min<std::int64_t>(w.batches, active_time(w, w.started, now_) / each);
}

void Simulation::end_update(Worker& w, const Engine::Execute& a, const Contributions& all) {
  if (w.phase == Worker::Phase::dead || w.phase == Worker::Phase::ended) return;
  const auto mine = all.find(w.rank);
  const std::int64_t done = mine == all.end() ? 0 : mine->second.batches;
  w.loss = learner_.gradient(w.rank, a.version, w.model).second;
  take(w, *w.delivered);
  add_row(w, a.version, done > 0, w.delivered->members, w.delivered->period, done);
  log(event::WentOn{w.rank, a.version, a.version.next(), true, true, a.version == world_.last,
                    w.phase == Worker::Phase::waiting ? now_ - w.arrived : Duration::zero()});
  if (a.version == world_.last) {
    w.phase = Worker::Phase::ended;
  } else {
    begin(w, a.version.next());
  }
}

void Simulation::add_row(Worker& w, Version step, bool fresh, Members group, std::int64_t period,
                         std::int64_t batches) {
  outcome_.rows.push_back({.worker = w.rank,
                           .step = step,
                           .time = now_ - Instant{},
                           .model = w.model,
                           .fresh = fresh,
                           .group = std::move(group),
                           .weight = 1,
                           .period = period,
                           .batches_done = rules_.strategy.brings_batches() ? batches : 1,
                           .loss = w.loss});
}

}  // namespace paceline::simulate
