#include <algorithm>
#include <cmath>

#include "algorithms/outer.h"
#include "algorithms/simulate/simulation.h"

// What averages come to, what they cost, and what workers make of them.

namespace paceline::simulate {
namespace {

void add(Vector& to, const Vector& what, double weight = 1) {
  for (std::size_t k = 0; k < to.size(); ++k) to[k] += weight * what[k];
}

}  // namespace

const Members& Simulation::members_of(NodeId id, const Engine::Execute& a) {
  if (a.sync) return everybody_;
  if (grouped_ != a.version) {
    grouped_ = a.version;
    groups_.clear();
    for (auto& group : node(id).engine->plan().groups(a.version)) groups_.emplace_back(std::move(group));
  }
  return groups_[static_cast<std::size_t>(a.group)];
}

Simulation::Result Simulation::average(NodeId id, const Engine::Execute& a, const Contributions& all,
                                       scheduler::RoundSums& sums) {
  Node& n = node(id);
  const auto& plan = n.engine->plan();
  const auto& strategy = rules_.strategy;
  Result result{.version = a.version, .sync = a.sync};
  result.models = plan.round(a.version).payload == scheduler::Payload::models;
  result.period = result.models ? plan.period() : 1;
  result.sum.assign(workers_[0].model.size(), 0.0);
  scheduler::Weighing::Total total{.contributions = static_cast<std::int64_t>(all.size())};
  std::vector<Rank> contributors;
  for (const auto& [rank, c] : all) {
    add(result.sum, c.numbers, weighing_.of_samples(c.steps));
    total.samples += c.steps;
    total.bodies += c.batches;
    contributors.push_back(rank);
    if (c.tag.value < 0) continue;  // Where it started: no loss belongs to it.
    sums.loss_sum += c.loss;
    ++sums.loss_count;
  }
  result.members = std::move(contributors);
  sums.learning_rate = learner_.lr;
  sums.leader_time = now_ - Instant{};
  // Who contributes nothing takes part all the same.
  if (strategy.brings_batches() || weighing_.divisor == scheduler::Weighing::Divisor::members)
    result.members = members_of(id, a);
  const auto workers = static_cast<std::int64_t>(everybody_.size());
  const double divisor = weighing_.divisor_of(total, workers, plan.round(a.version).payload);
  result.mean = result.sum;
  for (double& x : result.mean) x /= divisor;
  if (weighs_by_samples() && total.samples == 0) {
    result.mean = n.anchor;  // Nobody has done anything.
  } else if (a.sync && strategy.outer.kind != algorithms::Outer::Kind::none) {
    algorithms::outer_step<double>(strategy.outer, n.anchor, n.outer_buffer, result.mean, learner_.lr);
  }
  return result;
}

void Simulation::take(Worker& w, const Result& result) {
  const auto& strategy = rules_.strategy;
  if (rules_.mixing) {
    w.model = result.mean;
  } else if (!result.models) {
    step(learner_, w.momentum, w.model, result.mean);
    if (strategy.warmup > 0) w.published = Contribution{.tag = result.version, .numbers = w.model};
  } else if (!strategy.code_parity) {
    w.model = result.mean;
    w.steps = 0;
    if (strategy.outer.clears_momentum()) w.momentum = {};
  } else {
    if (result.sync) {
      w.model = result.mean;
    } else {
      merge(w, result);
      return;
    }
    add(w.model, w.change);
  }
}

void Simulation::merge(Worker& w, const Result& result) {
  const auto& strategy = rules_.strategy;
  if (!result.models) {
    if (strategy.tiers.front().late == scheduler::Lateness::drops) w.published.reset();
    step(learner_, w.momentum, w.model, result.mean);
    return;
  }
  if (strategy.outer.kind != algorithms::Outer::Kind::none) return take(w, result);
  const double n = static_cast<double>(result.members.size()) + 1;
  for (std::size_t k = 0; k < w.model.size(); ++k) w.model[k] = (result.sum[k] + w.model[k]) / n;
  if (strategy.code_parity) add(w.model, w.change);
}

/// An update over a neighbourhood ends: models mix, and everybody adds what it has finished itself.
void Simulation::mix_models(const Contributions& all, Version v) {
  mixed_ = v;
  scheduler::Weighing::Total total;
  for (const auto& [rank, c] : all) total.bodies += c.batches;
  const auto workers = static_cast<std::int64_t>(workers_.size());
  const double scale = 1 / weighing_.divisor_of(total, workers, scheduler::Payload::gradients);
  std::vector<Vector> changes;
  mixtures_.clear();
  for (Worker& w : workers_) {
    changes.emplace_back(w.model.size(), 0.0);
    const auto mine = all.find(w.rank);
    if (mine == all.end()) continue;
    Vector gradient = mine->second.numbers;
    for (double& g : gradient) g *= static_cast<double>(workers) * scale;
    Vector after = w.model;
    step(learner_, w.momentum, after, gradient);
    for (std::size_t k = 0; k < after.size(); ++k) changes.back()[k] = after[k] - w.model[k];
  }
  const bool step_first = rules_.strategy.order == algorithms::Order::adapt_then_combine;
  for (const Worker& w : workers_) {
    Vector mixed(w.model.size(), 0.0);
    std::vector<Rank> members;
    for (const auto& share : rules_.mixing->row(w.rank, v)) {
      const auto from = static_cast<std::size_t>(share.from.value);
      add(mixed, workers_[from].model, share.weight);
      if (step_first) add(mixed, changes[from], share.weight);
      members.push_back(share.from);
    }
    if (!step_first) add(mixed, changes[static_cast<std::size_t>(w.rank.value)]);
    mixtures_.push_back({std::move(mixed), std::move(members)});
  }
}

Duration Simulation::travel(NodeId id, const Engine::Execute& a) {
  const Members& members = members_of(id, a);
  const auto g = static_cast<std::int64_t>(members.size());
  const auto numbers = static_cast<std::int64_t>(workers_[0].model.size());
  const double bytes = world_.model_bytes > 0 ? world_.model_bytes : static_cast<double>(numbers) * sizeof(double);
  const bool counts = id_of(*members.begin()) == id;  // Agents that share a group count it once.
  const double phases = std::log2(static_cast<double>(g));
  const auto kind = rules_.strategy.tiers.front().groups.kind;
  if (rules_.mixing && kind == algorithms::Groups::Kind::clusters) {
    std::size_t most = 1;
    for (Rank rank : members) {
      const auto row = rules_.mixing->row(rank, a.version);
      if (counts && row.front().from == rank)
        count_ring(outcome_.summary, static_cast<std::int64_t>(row.size()), numbers);
      most = std::max(most, row.size());
    }
    return world_.network.time_of_average(static_cast<std::int64_t>(most), bytes);
  }
  if (rules_.mixing) {
    std::int64_t most = 0;
    for (Rank rank : members) {
      const auto sent = static_cast<std::int64_t>(rules_.mixing->receivers(rank, a.version).size());
      if (counts) count(outcome_.summary, sent, numbers);
      most = std::max(most, sent);
    }
    return world_.network.time(static_cast<double>(most), bytes);
  }
  if (kind == algorithms::Groups::Kind::server) {
    if (counts) count(outcome_.summary, 2 * g, numbers);
    return world_.network.time(2 * static_cast<double>(g), bytes);  // All through the server's link.
  }
  if (g < 2) return Duration::zero();
  if (!a.sync && kind == algorithms::Groups::Kind::butterfly) {
    if (counts) count(outcome_.summary, g * std::llround(phases), numbers);
    return world_.network.time(phases, bytes);
  }
  if (counts) count_ring(outcome_.summary, g, numbers);
  return world_.network.time_of_average(g, bytes);
}

void Simulation::summarise() {
  const auto& plan = nodes_[0].engine->plan();
  const bool outer = rules_.strategy.outer.kind != algorithms::Outer::Kind::none;
  Summary& summary = outcome_.summary;
  if (outer && plan.round(world_.last).kind == scheduler::Round::Kind::sync) {
    summary.model = nodes_[0].anchor;
    return;
  }
  summary.model.assign(workers_[0].model.size(), 0.0);
  std::vector<const Worker*> living;  // Who died has left the job.
  for (const Worker& w : workers_)
    if (takes_part(w)) living.push_back(&w);
  for (const Worker* w : living) add(summary.model, w->model, 1 / static_cast<double>(living.size()));
}

}  // namespace paceline::simulate
