#include "algorithms/simulate/simulation.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"

// The clock and the workers. What the engines ask for: simulated_shell.cc; what averages come to:
// simulated_averages.cc.

namespace paceline::simulate {

using scheduler::Lateness;
using scheduler::Round;

Simulation::Simulation(World world, Learner learner, Rules rules)
    : world_(std::move(world)),
      learner_(std::move(learner)),
      rules_(std::move(rules)),
      weighing_(algorithms::weighing_of(rules_.strategy)) {
  PACELINE_CHECK(!world_.node_of.empty() && world_.compute, "a world needs workers and compute times");
  Engine::Options options;
  options.node_of = world_.node_of;
  options.last = world_.last;
  options.patience_min = world_.patience_min;
  options.patience_median_steps = world_.patience_median_steps;
  options.absent_median_steps = world_.absent_median_steps;
  options.late_finish_their_iterations = world_.late_finish_their_iterations;
  options.wait_limit = rules_.strategy.patience;
  for (std::int32_t n = 0; n < world_.nodes; ++n) {
    options.self = NodeId{n};
    nodes_.emplace_back();
    nodes_.back().engine = std::make_unique<Engine>(options, rules_.plan());
  }
  for (std::size_t i = 0; i < world_.node_of.size(); ++i) {
    Worker w;
    w.rank = Rank{static_cast<std::int32_t>(i)};
    w.model = learner_.start(w.rank);
    workers_.push_back(std::move(w));
  }
  Vector mean(workers_[0].model.size(), 0.0);
  for (const Worker& w : workers_) {
    for (std::size_t k = 0; k < mean.size(); ++k) mean[k] += w.model[k] / static_cast<double>(workers_.size());
  }
  for (Node& n : nodes_) {
    n.anchor = mean;
    n.outer_buffer.assign(mean.size(), 0.0);
  }
  computed_.resize(workers_.size());
  std::vector<Rank> all;
  for (const Worker& w : workers_) all.push_back(w.rank);
  everybody_ = std::move(all);
  for (const World::Fault& f : world_.faults) {
    worker(f.rank).fault = f;
    if (!f.until) schedule(f.at, Death{f.rank});
  }
  for (Worker& w : workers_) {
    const auto& plan = node_of(w.rank).engine->plan();
    if (plan.payload() == scheduler::Payload::models)
      w.published = Contribution{.tag = Version{-1}, .numbers = w.model};
    w.next_round = plan.publishes_every_iteration() ? Version{0} : plan.next_round(Version{0});
    begin(w, Version{0});
  }
}

paceline::Result<void> Simulation::run() {
  PACELINE_TRY(change_views());
  while (const auto next = next_instant()) {
    now_ = std::max(now_, *next);
    at_instant();
    PACELINE_TRY(change_views());
  }
  summarise();
  finish(outcome_, computed_);
  return {};
}

// Workers leave and join, once all agents have executed the version after which they do: nobody has arrived at a later
// one.

paceline::Result<void> Simulation::change_views() {
  for (; next_view_ < world_.views.size(); ++next_view_) {
    const auto& view = world_.views[next_view_];
    Version done = nodes_[0].engine->done();
    for (const Node& n : nodes_) done = std::min(done, n.engine->done());
    if (done < view.after) {
      const auto& plan = nodes_[0].engine->plan();
      const bool is_next = plan.next_round(done.next()) == view.after;
      for (const Rank rank : view.join)
        if (is_next && !abandons()) ask(worker(rank));
      return {};
    }
    if (synced_ != view.after)
      return fail(ErrorKind::invalid, "views[" + std::to_string(next_view_) +
                                          "].after: there is no average of all after step " + to_string(view.after));
    for (const Rank rank : view.leave) leave(worker(rank));
    const auto donor =
        std::find_if(workers_.begin(), workers_.end(), [this](const Worker& w) { return takes_part(w); });
    std::vector<Rank> there;
    for (const Rank rank : view.join) {
      ask(worker(rank));
      join(worker(rank), *donor);
    }
    for (const Worker& w : workers_)
      if (takes_part(w)) there.push_back(w.rank);
    everybody_ = std::move(there);
  }
  return {};
}

void Simulation::leave(Worker& w) {
  w.phase = Worker::Phase::dead;
  ++w.generation;
  act(id_of(w.rank), node_of(w.rank).engine->on_gone(w.rank, now_));
}

void Simulation::ask(Worker& w) {
  if (!std::exchange(w.asks, true)) act(id_of(w.rank), node_of(w.rank).engine->on_return(w.rank, now_));
}

/// With the state of another, but for the losses that it tells.
void Simulation::join(Worker& w, const Worker& donor) {
  w.asks = false;
  w.model = donor.model;
  w.momentum = donor.momentum;
  w.next_round = donor.next_round;
  w.steps = 0;
  w.losses.clear();
  w.published.reset();
  w.delivered.reset();
  w.retained.clear();
  w.started = now_;
  w.in_vain = {};
  begin(w, donor.t);
}

std::optional<Instant> Simulation::next_instant() const {
  std::optional<Instant> next;
  if (!due_.empty()) next = due_.top().at;
  if (!has_deadlines()) return next;
  for (const Node& n : nodes_) next = earlier(next, n.engine->next_deadline());
  return next;
}

void Simulation::at_instant() {
  std::vector<Rank> finished, died;
  std::vector<Message> messages;
  std::vector<Average> averages;
  while (!due_.empty() && due_.top().at <= now_) {
    const auto what = due_.top().what;
    due_.pop();
    if (const auto* f = std::get_if<Finish>(&what)) {
      if (worker(f->rank).generation == f->generation && worker(f->rank).phase == Worker::Phase::computing)
        finished.push_back(f->rank);
    } else if (const auto* d = std::get_if<Death>(&what)) {
      died.push_back(d->rank);
    } else if (const auto* a = std::get_if<Average>(&what)) {
      averages.push_back(*a);
    } else {
      messages.push_back(std::get<Message>(what));
    }
  }
  for (Rank rank : died) {
    Worker& w = worker(rank);
    if (w.phase == Worker::Phase::ended || w.phase == Worker::Phase::dead) continue;
    std::erase(finished, rank);
    log(event::Died{rank});
    leave(w);
  }
  std::sort(finished.begin(), finished.end());
  std::vector<Rank> reporting;
  for (Rank rank : finished) {
    Worker& w = worker(rank);
    finish_step(w);
    if (w.phase != Worker::Phase::waiting) continue;
    reporting.push_back(rank);
    node_of(rank).engine->on_step(world_.compute(rank, w.t));
  }
  for (const Message& m : messages) {
    hand_over(m);
    drain();
  }
  for (const Average& a : averages) execute(a.node, a.action);
  report(std::move(reporting));
  tick_due();
}

void Simulation::report(std::vector<Rank> ranks) {
  const auto take = [&](auto&& which) {
    for (std::size_t i = 0; i < ranks.size();) {
      if (!which(worker(ranks[i]))) {
        ++i;
        continue;
      }
      const Rank rank = ranks[i];
      ranks.erase(ranks.begin() + static_cast<std::ptrdiff_t>(i));
      arrive(rank);
    }
  };
  const auto at_sync = [&](const Worker& w) {
    const Engine& e = *node_of(w.rank).engine;
    if (w.t <= e.done()) return false;
    const Round round = e.plan().round(w.t);
    return round.kind == Round::Kind::sync && round.trigger == scheduler::Trigger::all_arrived;
  };
  const auto joins = [&](const Worker& w) { return node_of(w.rank).engine->is_awaited_after(w.t); };
  take(at_sync);
  take(joins);
  std::stable_sort(ranks.begin(), ranks.end(), [&](Rank a, Rank b) { return worker(a).t < worker(b).t; });
  take([&](const Worker& w) { return w.t > node_of(w.rank).engine->done(); });
  std::sort(ranks.begin(), ranks.end());
  take([](const Worker&) { return true; });
}

void Simulation::arrive(Rank rank) {
  Worker& w = worker(rank);
  if (w.phase != Worker::Phase::waiting) return;  // Its update has been ended by another one in this instant.
  log(event::Reported{rank, w.t});
  const Version t = w.t;
  act(id_of(rank), node_of(rank).engine->on_arrival(rank, t, Duration::zero(), now_));
}

bool Simulation::has_deadlines() const {
  return !world_.faults.empty() || world_.patience_min < World{}.patience_min || rules_.strategy.patience ||
         std::any_of(rules_.strategy.tiers.begin(), rules_.strategy.tiers.end(),
                     [](const auto& tier) { return tier.grace.has_value(); });
}

void Simulation::tick_due() {
  if (!has_deadlines()) return;
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    Engine& e = *nodes_[n].engine;
    const auto deadline = e.next_deadline();
    if (deadline && *deadline <= now_) act(NodeId{static_cast<std::int32_t>(n)}, e.tick(now_));
  }
}

void Simulation::schedule(Instant at, What what) { due_.push({at, order_++, std::move(what)}); }

Instant Simulation::active_end(const Worker& w, Instant from, Duration d) const {
  if (!w.fault || !w.fault->until || from >= *w.fault->until) return from + d;
  if (from >= w.fault->at) return *w.fault->until + d;
  return from + d <= w.fault->at ? from + d : from + d + (*w.fault->until - w.fault->at);
}

Duration Simulation::active_time(const Worker& w, Instant from, Instant to) const {
  if (to <= from) return Duration::zero();
  Duration stopped{};
  if (w.fault && w.fault->until) {
    stopped = std::max(Duration::zero(), std::min(to, *w.fault->until) - std::max(from, w.fault->at));
  }
  return to - from - stopped;
}

bool Simulation::abandons() const { return rules_.strategy.tiers.back().late == Lateness::abandons; }

void Simulation::begin(Worker& w, Version t) {
  w.phase = Worker::Phase::computing;
  w.t = t;
  w.started = std::max(w.started, now_);
  w.batches = rules_.strategy.brings_batches() ? rules_.strategy.batches : 1;
  const Duration d = world_.compute(w.rank, t);
  PACELINE_CHECK(d > Duration::zero(), "an iteration takes some time");
  schedule(active_end(w, w.started, d * w.batches), Finish{w.rank, ++w.generation});
}

void Simulation::finish_step(Worker& w) {
  const auto& plan = node_of(w.rank).engine->plan();
  settle(w);
  computed_[static_cast<std::size_t>(w.rank.value)] += world_.compute(w.rank, w.t) * w.batches;
  auto [gradient, loss] = learner_.gradient(w.rank, w.t, w.model);
  w.loss = loss;
  w.losses.push_back(loss);
  if (static_cast<std::int64_t>(w.losses.size()) > learner_.loss_window) w.losses.pop_front();
  double mean_loss = 0;
  for (double l : w.losses) mean_loss += l / static_cast<double>(w.losses.size());
  const Round round = w.t < w.next_round ? Round{} : plan.round(w.t);
  if (round.kind != Round::Kind::none && round.payload == scheduler::Payload::gradients) {
    publish_gradient(w, std::move(gradient), mean_loss);
  } else {
    if (rules_.strategy.tiers.front().late == Lateness::accumulates && w.published) {  // What it still has to give.
      for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] += w.published->numbers[k];
      w.published.reset();
    }
    ++w.steps;
    Vector before = w.model;
    step(learner_, w.momentum, w.model, gradient);
    if (w.t < w.next_round) {
      add_row(w, w.t, true, {w.rank}, plan.period());
      if (w.t == world_.last) {
        w.phase = Worker::Phase::ended;
      } else {
        begin(w, w.t.next());
      }
      return;
    }
    if (rules_.strategy.code_parity) {  // Models of the step's start are averaged; the step is added then.
      w.change = w.model;
      for (std::size_t k = 0; k < before.size(); ++k) w.change[k] -= before[k];
      w.model = std::move(before);
    }
    w.published = Contribution{.tag = w.t, .numbers = w.model, .loss = mean_loss, .steps = w.steps};
  }
  log(event::Published{w.rank, w.t});
  w.phase = Worker::Phase::waiting;
  w.arrived = now_;
}

/// Books a mini-batch that was finished in vain, once it is.
void Simulation::settle(Worker& w) {
  if (w.started > now_) return;
  computed_[static_cast<std::size_t>(w.rank.value)] += std::exchange(w.in_vain, Duration::zero());
}

void Simulation::publish_gradient(Worker& w, Vector gradient, double mean_loss) {
  const Lateness late = rules_.strategy.tiers.front().late;
  if (rules_.strategy.brings_batches()) {
    const double n = static_cast<double>(w.batches);
    for (double& g : gradient) g *= n * weighing_.of_unfinished(w.batches);
  } else if (late == Lateness::accumulates && w.published) {
    for (std::size_t k = 0; k < gradient.size(); ++k) gradient[k] += w.published->numbers[k];
  }
  w.published = Contribution{.tag = w.t, .numbers = std::move(gradient), .loss = mean_loss, .batches = w.batches};
}

}  // namespace paceline::simulate
