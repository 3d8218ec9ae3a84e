#include "algorithms/simulate/exchange_simulation.h"

#include <algorithm>

#include "algorithms/outer.h"
#include "runtime/base/check.h"

namespace paceline::simulate {

ExchangeSimulation::ExchangeSimulation(World world, Learner learner, std::shared_ptr<const scheduler::MixPlan> plan,
                                       algorithms::Strategy strategy)
    : world_(std::move(world)),
      learner_(std::move(learner)),
      outer_(strategy.outer),
      tier_(strategy.tiers.front()),
      every_(tier_.period.steps / std::max(1, tier_.fragments)) {
  PACELINE_CHECK(!world_.node_of.empty() && world_.compute, "a world needs workers and compute times");
  for (std::int32_t n = 0; n < world_.nodes; ++n) {
    nodes_.emplace_back();
    nodes_.back().engine =
        std::make_unique<Engine>(Engine::Options{.self = NodeId{n}, .node_of = world_.node_of}, plan);
  }
  computed_.resize(world_.node_of.size());
  for (std::size_t i = 0; i < world_.node_of.size(); ++i) {
    Worker w;
    w.rank = Rank{static_cast<std::int32_t>(i)};
    w.x = w.anchor = learner_.start(w.rank);
    w.outer_buffer.assign(w.x.size(), 0.0);
    workers_.push_back(std::move(w));
  }
  if (!is_streaming()) return;
  Vector mean(workers_[0].x.size(), 0.0);  // Of all averages one, of pairs each its own.
  for (const Worker& w : workers_)
    for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += w.x[k] / static_cast<double>(workers_.size());
  for (Worker& w : workers_) w.anchor = mean;
}

Outcome ExchangeSimulation::run() {
  for (Worker& w : workers_) begin(w);
  while (!due_.empty()) {
    const Due due = due_.top();
    due_.pop();
    now_ = due.at;
    if (due.travelled) {
      contribute(due.rank, *due.travelled, due.what);
    } else {
      finish_step(worker(due.rank));
    }
  }
  Summary& summary = outcome_.summary;
  summary.model.assign(workers_[0].x.size(), 0.0);
  for (const Worker& w : workers_)
    for (std::size_t k = 0; k < w.x.size(); ++k) summary.model[k] += w.x[k] / static_cast<double>(workers_.size());
  finish(outcome_, computed_);
  return std::move(outcome_);
}

std::optional<Version> ExchangeSimulation::sent_after(std::int64_t t) const {
  if (t < 0 || (t + 1) % every_ != 0) return std::nullopt;
  return Version{(t + 1) / every_ - 1};
}

std::pair<std::size_t, std::size_t> ExchangeSimulation::part(Version r) const {
  const std::size_t size = workers_[0].x.size();
  if (!is_streaming()) return {0, size};
  const auto parts = static_cast<std::size_t>(tier_.fragments), part = static_cast<std::size_t>(r.value) % parts;
  return {size * part / parts, size * (part + 1) / parts};
}

void ExchangeSimulation::begin(Worker& w) {
  const Duration d = world_.compute(w.rank, w.t);
  PACELINE_CHECK(d > Duration::zero(), "an iteration takes some time");
  due_.push({now_ + d, std::nullopt, w.rank});
}

void ExchangeSimulation::finish_step(Worker& w) {
  computed_[static_cast<std::size_t>(w.rank.value)] += world_.compute(w.rank, w.t);
  auto [gradient, loss] = learner_.gradient(w.rank, w.t, w.x);
  w.loss = loss;
  step(learner_, w.momentum, w.x, gradient);
  if (const auto r = sent_after(w.t.value)) {
    auto what = std::make_shared<const Contribution>(Contribution{w.x, w.anchor});
    if (const Duration travel = send(w, *r); travel > Duration::zero()) {
      due_.push({now_ + travel, *r, w.rank, std::move(what)});
    } else {
      contribute(w.rank, *r, std::move(what));
    }
  }
  const auto taken = sent_after(w.t.value - tier_.delay);
  if (!taken) return end_step(w, {w.rank});
  w.wanted = taken;
  if (node_of(w.rank).held.contains({w.rank, *taken}))
    act(id_of(w.rank), node_of(w.rank).engine->on_wanted(w.rank, *taken));
}

/// Counts what is sent; how long it travels.
Duration ExchangeSimulation::send(const Worker& w, Version r) {
  const auto& plan = node_of(w.rank).engine->plan(r);
  const auto [from, to] = part(r);
  const auto numbers = static_cast<std::int64_t>(to - from);
  const double share = static_cast<double>(numbers) / static_cast<double>(w.x.size());
  const double model = world_.model_bytes > 0 ? world_.model_bytes : static_cast<double>(w.x.size()) * sizeof(double);
  if (is_streaming()) {
    const auto members = static_cast<std::int64_t>(workers_.size());
    if (w.rank == Rank{0}) count_ring(outcome_.summary, members, numbers);
    return world_.network.time_of_average(members, share * model);
  }
  const auto others = static_cast<std::int64_t>(plan.receivers(w.rank, r).size());
  count(outcome_.summary, others, 2 * numbers);  // Slow weights and what it has moved.
  return world_.network.time(static_cast<double>(others), 2 * model);
}

void ExchangeSimulation::contribute(Rank rank, Version r, std::shared_ptr<const Contribution> what) {
  Node& node = node_of(rank);
  node.held[{rank, r}] = std::move(what);
  act(id_of(rank), node.engine->on_contribution(rank, r));
  if (worker(rank).wanted == r) act(id_of(rank), node.engine->on_wanted(rank, r));
}

void ExchangeSimulation::act(NodeId id, const Engine::Actions& actions) {
  Node& node = nodes_[static_cast<std::size_t>(id.value)];
  for (const auto& action : actions) {
    if (const auto* send = std::get_if<Engine::Send>(&action)) {
      Node& to = nodes_[static_cast<std::size_t>(send->to.value)];
      to.held[{send->rank, send->version}] = node.held.at({send->rank, send->version});
      act(send->to, to.engine->on_contribution(send->rank, send->version));
    } else if (const auto* release = std::get_if<Engine::Release>(&action)) {
      node.held.erase({release->rank, release->version});
    } else {
      mix(std::get<Engine::Mix>(action));
    }
  }
}

void ExchangeSimulation::mix(const Engine::Mix& action) {
  Worker& w = worker(action.rank);
  Node& node = node_of(w.rank);
  std::vector<Rank> group;
  std::vector<const Contribution*> given;
  for (const auto& share : action.row) {
    group.push_back(share.from);
    given.push_back(node.held.at({share.from, action.version}).get());
  }
  if (is_streaming()) {
    take_part(w, action.version, given);
  } else {
    take_pair(w, given);
  }
  w.wanted.reset();
  const auto actions = node.engine->on_mixed(action.rank, action.version);
  end_step(w, std::move(group));
  act(id_of(w.rank), actions);
}

void ExchangeSimulation::take_part(Worker& w, Version r, const std::vector<const Contribution*>& given) {
  const auto [from, to] = part(r);
  Vector mean(to - from, 0.0);
  for (const Contribution* c : given)
    for (std::size_t k = from; k < to; ++k) mean[k - from] += c->x[k] / static_cast<double>(given.size());
  const std::span<double> anchor(w.anchor), buffer(w.outer_buffer);
  algorithms::outer_step<double>(outer_, anchor.subspan(from, to - from), buffer.subspan(from, to - from), mean,
                                 learner_.lr);
  for (std::size_t k = from; k < to; ++k) w.x[k] = tier_.keeps * w.x[k] + (1 - tier_.keeps) * w.anchor[k];
}

void ExchangeSimulation::take_pair(Worker& w, const std::vector<const Contribution*>& given) {
  const auto n = static_cast<double>(given.size());
  for (std::size_t k = 0; k < w.x.size(); ++k) {
    double moved = 0, mean = 0;
    for (const Contribution* c : given) {
      moved += (c->x[k] - c->anchor[k]) / n;
      mean += c->anchor[k] / n;
    }
    double& buffer = w.outer_buffer[k];
    buffer = outer_.momentum * buffer + outer_.rate * moved + outer_.pull * (mean - w.anchor[k]);
    w.anchor[k] += buffer;
  }
  w.x = w.anchor;
}

void ExchangeSimulation::end_step(Worker& w, std::vector<Rank> group) {
  outcome_.rows.push_back({.worker = w.rank,
                           .step = w.t,
                           .time = now_ - Instant{},
                           .model = w.x,
                           .group = std::move(group),
                           .period = tier_.period.steps,
                           .loss = w.loss});
  if (w.t == world_.last) return;
  w.t = w.t.next();
  begin(w);
}

}  // namespace paceline::simulate
