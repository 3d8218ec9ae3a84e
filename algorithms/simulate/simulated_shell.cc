#include <algorithm>
#include <span>

#include "algorithms/normalise.h"
#include "algorithms/outer.h"
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
  } else {
    const auto& p = std::get<Engine::SendPartial>(m.body);
    if (p.version > n.engine->done()) n.partials[{p.version, p.group}][m.from] = m.partial;
    actions = n.engine->on_partial(m.from, p.version, p.group, now_);
  }
  for (Engine::Action& a : actions) todo_.push_back({m.to, std::move(a)});
}

void Simulation::carry_out(NodeId id, const Engine::Activate& a) { send({id, a.to, a, nullptr}); }

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
    Worker& w = worker(rank);
    std::optional<Contribution> c = w.published;
    if (abandons(n)) {  // What is finished of this very update, and nothing older.
      const std::int64_t done = w.phase == Worker::Phase::dead ? 0 : batches_done(w, a.version);
      c.reset();
      if (done > 0) {
        auto [gradient, loss] = learner_.gradient(rank, a.version, w.model);
        for (double& g : gradient) {
          g *= static_cast<double>(done) * algorithms::contribution_weight(rules_.normalise, done, rules_.batches);
        }
        c = Contribution{.tag = a.version, .numbers = std::move(gradient), .loss = loss, .batches = done};
      }
    }
    contributed.push_back(c ? std::optional(c->tag) : std::nullopt);
    if (!c) continue;
    tags[rank] = c->tag;
    numbers[rank] = c->numbers;
    pinned->emplace(rank, std::move(*c));
  }
  n.sealed[{a.version, a.group}] = std::move(pinned);
  log(event::Sealed{id, a.version, a.group, std::move(tags), std::move(numbers)});
  act(id, n.engine->on_sealed(a.version, a.group, contributed, now_));
}

void Simulation::carry_out(NodeId id, const Engine::Execute& a) {
  Node& n = node(id);
  const Key key{a.version, a.group};
  Contributions all = *n.sealed.at(key);
  for (NodeId other : a.others) {
    const auto& partial = *n.partials.at(key).at(other);
    all.insert(partial.begin(), partial.end());
  }
  Result result;
  result.version = a.version;
  result.period = n.engine->plan().period();
  scheduler::RoundSums sums;
  std::int64_t batches = 0;
  std::map<Rank, Version> tags;
  result.sum.assign(workers_[0].model.size(), 0.0);
  for (const auto& [rank, c] : all) {
    for (std::size_t k = 0; k < result.sum.size(); ++k) result.sum[k] += c.numbers[k];
    tags[rank] = c.tag;
    result.members.push_back(rank);
    batches += c.batches;
    sums.loss_sum += c.loss;
    ++sums.loss_count;
  }
  sums.learning_rate = learner_.lr;
  sums.leader_time = now_ - Instant{};
  result.mean = result.sum;
  const auto& plan = n.engine->plan();
  if (abandons(n)) {
    const double scale =
        algorithms::result_scale(rules_.normalise, static_cast<std::int64_t>(workers_.size()), rules_.batches, batches);
    for (double& x : result.mean) x *= scale;
  } else {
    const double each = all.empty()                                    ? 0
                        : plan.payload() == scheduler::Payload::models ? static_cast<double>(all.size())
                                                                       : static_cast<double>(batches);
    for (double& x : result.mean) x = each > 0 ? x / each : 0;
  }
  if (a.sync && rules_.block_momentum > 0) {
    algorithms::block_momentum_step<double>(n.anchor, n.block_buffer, result.mean, rules_.block_momentum, learner_.lr);
  }
  log(event::Executed{id, a.version, a.group, tags, result.mean, a.fresh, a.stale});
  const bool ends_updates = abandons(n);
  for (Rank rank : a.fresh) worker(rank).delivered = result;
  for (Rank rank : a.stale) worker(rank).retained = result;
  if (ends_updates) {
    for (const auto* ranks : {&a.fresh, &a.stale}) {
      for (Rank rank : *ranks) worker(rank).delivered = result;
    }
  }
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
  PACELINE_CHECK(w.retained.version == a.with, "a late worker merges with a sum that its node has kept");
  const double n = static_cast<double>(w.retained.members.size()) + 1;
  for (std::size_t k = 0; k < w.model.size(); ++k) w.model[k] = (w.retained.sum[k] + w.model[k]) / n;
  act(id, node(id).engine->on_merged(a.rank, now_));
}

void Simulation::carry_out(NodeId id, const Engine::Verdict& a) {
  Worker& w = worker(a.rank);
  if (abandons(node(id)) || w.phase != Worker::Phase::waiting) return;  // end_update() has done it all; or it is dead.
  std::int64_t period = node(id).engine->plan().period();
  std::vector<Rank> group{w.rank};
  if (a.averaged && a.fresh) {
    PACELINE_CHECK(w.delivered.version == a.own, "a present worker goes on with the result of its own version");
    group = w.delivered.members;
    period = w.delivered.period;
    if (node(id).engine->plan().payload() == scheduler::Payload::models) {
      w.model = w.delivered.mean;
      if (rules_.block_momentum > 0) w.has_buffer = false;
    } else {
      step(w, w.delivered.mean);
    }
  } else if (a.averaged) {
    group = w.retained.members;
  }
  log(event::WentOn{w.rank, a.own, a.next, a.fresh, a.averaged, a.end, now_ - w.arrived});
  add_row(w, a.own, a.fresh, std::move(group), period);
  if (a.end) {
    w.phase = Worker::Phase::ended;
    return;
  }
  w.next_round = a.next_round;
  begin(w, a.next);
}

void Simulation::carry_out(NodeId id, const Engine::Abandon& a) { log(event::Abandoned{id, a.version}); }

void Simulation::carry_out(NodeId, const Engine::Leave& a) {
  log(event::Left{a.rank, a.version});
  worker(a.rank).phase = Worker::Phase::dead;
}

std::int64_t Simulation::batches_done(const Worker& w, Version v) const {
  if (w.t != v) return 0;
  if (w.phase == Worker::Phase::waiting) return rules_.batches;
  const Duration each = world_.compute(w.rank, v);
  return std::min<std::int64_t>(rules_.batches, active_time(w, w.started, now_) / each);
}

void Simulation::end_update(Worker& w, const Engine::Execute& a, const Contributions& all) {
  if (w.phase == Worker::Phase::dead || w.phase == Worker::Phase::ended) return;
  const auto mine = all.find(w.rank);
  const std::int64_t done = mine == all.end() ? 0 : mine->second.batches;
  const Duration each = world_.compute(w.rank, w.t);
  if (w.phase == Worker::Phase::computing && w.started < now_) {  // The mini-batch in flight is finished in vain.
    const std::int64_t begun = (active_time(w, w.started, now_) + each - Duration(1)) / each;
    w.started = active_end(w, w.started, begun * each);
  }
  w.loss = learner_.gradient(w.rank, a.version, w.model).second;
  step(w, w.delivered.mean);
  std::vector<Rank> everybody;
  for (const Worker& other : workers_) everybody.push_back(other.rank);
  add_row(w, a.version, done > 0, std::move(everybody), w.delivered.period, done);
  log(event::WentOn{w.rank, a.version, a.version.next(), true, true, a.version == world_.last,
                    w.phase == Worker::Phase::waiting ? now_ - w.arrived : Duration::zero()});
  if (a.version == world_.last) {
    w.phase = Worker::Phase::ended;
  } else {
    begin(w, a.version.next());
  }
}

void Simulation::step(Worker& w, const Vector& gradient) {
  const double mu = learner_.momentum;
  if (mu == 0) {
    for (std::size_t k = 0; k < w.model.size(); ++k) w.model[k] -= learner_.lr * gradient[k];
    return;
  }
  if (!w.has_buffer) {
    w.buffer = gradient;
  } else {
    for (std::size_t k = 0; k < gradient.size(); ++k) w.buffer[k] = mu * w.buffer[k] + gradient[k];
  }
  w.has_buffer = true;
  for (std::size_t k = 0; k < gradient.size(); ++k) {
    w.model[k] -= learner_.lr * (learner_.nesterov ? gradient[k] + mu * w.buffer[k] : w.buffer[k]);
  }
}

void Simulation::add_row(Worker& w, Version step, bool fresh, std::vector<Rank> group, std::int64_t period,
                         std::int64_t batches) {
  rows_.push_back({.worker = w.rank,
                   .step = step,
                   .time = now_ - Instant{},
                   .model = w.model,
                   .fresh = fresh,
                   .group = std::move(group),
                   .weight = 1,
                   .period = period,
                   .batches_done = batches,
                   .loss = w.loss});
}

}  // namespace paceline::simulate
