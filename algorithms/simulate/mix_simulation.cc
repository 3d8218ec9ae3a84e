#include "algorithms/simulate/mix_simulation.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"

namespace paceline::simulate {

using algorithms::Order;

MixSimulation::MixSimulation(World world, Learner learner, MixRules rules)
    : world_(std::move(world)), learner_(std::move(learner)), rules_(std::move(rules)) {
  PACELINE_CHECK(!world_.node_of.empty() && world_.compute, "a world needs workers and compute times");
  for (std::int32_t n = 0; n < world_.nodes; ++n) {
    nodes_.emplace_back();
    nodes_.back().engine = std::make_unique<Engine>(
        Engine::Options{.self = NodeId{n}, .node_of = world_.node_of, .columns_add_up = rules_.push_sum}, rules_.plan);
  }
  computed_.resize(world_.node_of.size());
  under_way_ = {.x = Vector(learner_.start(Rank{0}).size(), 0.0), .weight = 0};
  for (std::size_t i = 0; i < world_.node_of.size(); ++i) {
    Worker w;
    w.rank = Rank{static_cast<std::int32_t>(i)};
    w.x = learner_.start(w.rank);
    workers_.push_back(std::move(w));
  }
}

Outcome MixSimulation::run() {
  for (Worker& w : workers_) begin(w);
  while (!due_.empty()) {
    now_ = due_.top().at;
    std::vector<Due> now;
    for (; !due_.empty() && due_.top().at == now_; due_.pop()) now.push_back(due_.top());
    for (const Due& due : now) {
      switch (due.what) {
        case Due::What::step_ends: finish_step(worker(due.rank)); break;
        case Due::What::share_arrives: arrive(due); break;
        case Due::What::averaged: averaged(worker(due.rank)); break;
      }
    }
    // What was sent in this very instant has come by now; whoever ends his job in it is waited for no longer after it.
    std::erase_if(may_go_on_, [&](Rank rank) { return !worker(rank).waits; });
    for (Rank rank : may_go_on_) node_of(rank).engine->on_not_wanted(rank);
    for (Rank rank : std::exchange(may_go_on_, {})) end_step(worker(rank), {rank}, true);
  }
  Summary& summary = outcome_.summary;
  summary.model.assign(workers_[0].x.size(), 0.0);
  double weight = 0;
  const auto add = [&](const Vector& x, double w) {
    for (std::size_t k = 0; k < x.size(); ++k) summary.model[k] += x[k];
    weight += w;
  };
  for (const Worker& w : workers_) add(w.x, w.weight);
  add(under_way_.x, under_way_.weight);
  for (double& x : summary.model) x /= rules_.push_sum ? weight : static_cast<double>(workers_.size());
  finish(outcome_, computed_);
  return std::move(outcome_);
}

Vector MixSimulation::model_of(const Worker& w) const {
  Vector z = w.x;
  if (rules_.push_sum) {
    for (double& value : z) value /= w.weight;
  }
  return z;
}

void MixSimulation::begin(Worker& w) {
  if (rules_.order == Order::combine_then_adapt && !w.outstanding) {
    w.outstanding = true;
    w.sent_at = w.t;
    contribute(w, w.exchange);
    if (rules_.bound > 0) {  // What it does not give away it keeps.
      const double kept = kept_share(w);
      for (std::size_t k = 0; k < w.x.size(); ++k) {
        under_way_.x[k] += (1 - kept) * w.x[k];
        w.x[k] *= kept;
      }
      under_way_.weight += (1 - kept) * w.weight;
      w.weight *= kept;
    }
  }
  const Duration d = world_.compute(w.rank, w.t);
  PACELINE_CHECK(d > Duration::zero(), "an iteration takes some time");
  due_.push({now_ + d, Due::What::step_ends, w.rank});
}

/// Its own share, and those of workers that have ended and take none.
double MixSimulation::kept_share(const Worker& w) {
  const auto& plan = node_of(w.rank).engine->plan(w.exchange);
  const auto share_in = [&](Rank to) {
    for (const auto& share : plan.row(to, w.exchange))
      if (share.from == w.rank) return share.weight;
    return 0.0;
  };
  double kept = share_in(w.rank);
  for (Rank to : plan.receivers(w.rank, w.exchange))
    if (has_ended(worker(to))) kept += share_in(to);
  return kept;
}

void MixSimulation::contribute(Worker& w, Version v) {
  node_of(w.rank).held[{w.rank, v}] = std::make_shared<const Contribution>(Contribution{w.x, w.weight});
  count_messages(w, v);
  act(id_of(w.rank), node_of(w.rank).engine->on_contribution(w.rank, v));
}

void MixSimulation::count_messages(const Worker& w, Version v) {
  const Engine& engine = *node_of(w.rank).engine;
  const auto numbers = static_cast<std::int64_t>(w.x.size());
  if (!rules_.groups) {
    const auto others = engine.plan(v).receivers(w.rank, v);
    count(outcome_.summary,
          std::count_if(others.begin(), others.end(), [&](Rank to) { return !has_ended(worker(to)); }),
          numbers + (rules_.push_sum ? 1 : 0));
    return;
  }
  const auto row = engine.row(w.rank, v);
  const auto g = static_cast<std::int64_t>(row.size());
  if (row.front().from == w.rank) count_ring(outcome_.summary, g, numbers);
}

void MixSimulation::finish_step(Worker& w) {
  computed_[static_cast<std::size_t>(w.rank.value)] += world_.compute(w.rank, w.t);
  // The optimiser steps the model that the gradient was taken at; the strategy sees what that changes.
  const Vector before = model_of(w);
  auto [gradient, loss] = learner_.gradient(w.rank, w.t, before);
  w.loss = loss;
  Vector after = before;
  step(learner_, w.momentum, after, gradient);
  w.change.resize(after.size());
  for (std::size_t k = 0; k < after.size(); ++k) w.change[k] = after[k] - before[k];
  Engine& engine = *node_of(w.rank).engine;
  if (rules_.order == Order::adapt_then_combine) {
    for (std::size_t k = 0; k < w.x.size(); ++k) w.x[k] += w.change[k];
    const auto members = rules_.groups ? engine.row(w.rank, w.exchange).size() : 1;
    const Duration average = world_.network.time_of_average(static_cast<std::int64_t>(members), message_bytes());
    if (average > Duration::zero()) {  // The group has averaged so long after the last of it is there.
      due_.push({now_ + average, Due::What::averaged, w.rank});
      return;
    }
    contribute(w, w.exchange);
  } else if (rules_.bound > 0) {
    for (std::size_t k = 0; k < w.x.size(); ++k) w.x[k] += w.change[k];
    if (w.t.value + 1 - w.sent_at.value < rules_.bound) may_go_on_.push_back(w.rank);
  }
  w.waits = true;
  act(id_of(w.rank), engine.on_wanted(w.rank, w.exchange));
}

void MixSimulation::averaged(Worker& w) {
  w.waits = true;
  contribute(w, w.exchange);
  act(id_of(w.rank), node_of(w.rank).engine->on_wanted(w.rank, w.exchange));
}

double MixSimulation::message_bytes() const {
  if (world_.model_bytes > 0) return world_.model_bytes;
  return static_cast<double>(workers_[0].x.size() + (rules_.push_sum ? 1 : 0)) * sizeof(double);
}

void MixSimulation::arrive(const Due& share) {
  Node& to = nodes_[static_cast<std::size_t>(share.to.value)];
  to.held[{share.rank, share.version}] = share.share;
  act(share.to, to.engine->on_contribution(share.rank, share.version));
}

void MixSimulation::act(NodeId id, const Engine::Actions& actions) {
  Node& node = nodes_[static_cast<std::size_t>(id.value)];
  std::int64_t sent = 0;
  for (const auto& action : actions) {
    if (const auto* send = std::get_if<Engine::Send>(&action)) {
      ++sent;
      Due share{now_, Due::What::share_arrives, send->rank, send->version, send->to};
      share.share = node.held.at({send->rank, send->version});
      // One after the other on the sender's link.
      if (!rules_.groups) share.at += world_.network.time(static_cast<double>(sent), message_bytes());
      if (share.at > now_) {
        due_.push(std::move(share));
      } else {
        arrive(share);
      }
    } else if (const auto* release = std::get_if<Engine::Release>(&action)) {
      node.held.erase({release->rank, release->version});
    } else {
      mix(std::get<Engine::Mix>(action));
    }
  }
}

void MixSimulation::mix(const Engine::Mix& action) {
  Worker& w = worker(action.rank);
  Node& node = node_of(w.rank);
  take_mixed(w, action.version, action.row);
  std::vector<Rank> group;
  for (const auto& share : action.row) group.push_back(share.from);
  w.exchange = action.version.next();
  w.outstanding = false;
  const auto actions = node.engine->on_mixed(action.rank, action.version);
  end_step(w, std::move(group), rules_.bound == 0 || w.sent_at == w.t);
  act(id_of(w.rank), actions);
}

void MixSimulation::take_mixed(Worker& w, Version v, const std::vector<scheduler::Share>& row) {
  Vector sum(w.x.size(), 0.0);
  double weight = 0;
  for (const auto& share : row) {
    if (rules_.bound > 0 && share.from == w.rank) continue;  // It has kept that.
    const Contribution& c = *node_of(w.rank).held.at({share.from, v});
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += share.weight * c.x[k];
    weight += share.weight * c.weight;
  }
  if (rules_.bound > 0) {
    for (std::size_t k = 0; k < sum.size(); ++k) {
      w.x[k] += sum[k];
      under_way_.x[k] -= sum[k];
    }
    w.weight += weight;
    under_way_.weight -= weight;
    return;
  }
  w.x = std::move(sum);
  if (rules_.push_sum) w.weight = weight;
  if (rules_.order == Order::combine_then_adapt) {
    for (std::size_t k = 0; k < w.x.size(); ++k) w.x[k] += w.change[k];
  }
}

void MixSimulation::end_step(Worker& w, std::vector<Rank> group, bool fresh) {
  w.waits = false;
  outcome_.rows.push_back({.worker = w.rank,
                           .step = w.t,
                           .time = now_ - Instant{},
                           .model = model_of(w),
                           .fresh = fresh,
                           .group = std::move(group),
                           .weight = rules_.push_sum ? w.weight : 1,
                           .period = rules_.period ? rules_.period() : 1,
                           .loss = w.loss});
  if (w.t == world_.last) {
    w.ended = now_;
    const Version mixed{w.exchange.value - 1}, contributed = w.outstanding ? w.exchange : mixed;
    for (std::size_t n = 0; n < nodes_.size(); ++n)
      act(NodeId{static_cast<std::int32_t>(n)}, nodes_[n].engine->on_gone(w.rank, contributed, mixed));
    return;
  }
  w.t = w.t.next();
  begin(w);
}

}  // namespace paceline::simulate
