#include "algorithms/simulate/asynchronous_simulation.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "scheduler/asynchronous/server_engine.h"

namespace paceline::simulate {
namespace {

class AsynchronousSimulation {
 public:
  AsynchronousSimulation(const World& world, const Learner& learner, const AsynchronousRules& rules)
      : world_(world),
        learner_(learner),
        rules_(rules),
        engine_({.workers = static_cast<std::int32_t>(world.node_of.size()),
                 .bound = rules.partner ? std::nullopt : rules.bound,
                 .scale = rules.scale}),
        workers_(world.node_of.size()),
        computed_(world.node_of.size()) {}

  Outcome run() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const Rank rank{static_cast<std::int32_t>(i)};
      workers_[i].model = learner_.start(rank);
      if (i == 0) server_ = workers_[i].model;
    }
    for (std::size_t i = 0; i < workers_.size(); ++i) begin(Rank{static_cast<std::int32_t>(i)});
    while (!due_.empty()) {
      now_ = due_.top().at;
      std::vector<Due> now;
      for (; !due_.empty() && due_.top().at == now_; due_.pop()) now.push_back(due_.top());
      for (const Due& due : now) {
        switch (due.what) {
          case Due::What::step_ends: finish_step(due.rank); break;
          case Due::What::arrives: meet(due.rank); break;
          case Due::What::goes_on: begin(due.rank); break;
        }
      }
      for (Rank rank : std::exchange(waited_, {})) begin(rank);
    }
    Vector& model = outcome_.summary.model;
    model = server_;
    if (rules_.partner) {
      std::fill(model.begin(), model.end(), 0.0);
      for (const Worker& w : workers_) {
        for (std::size_t k = 0; k < model.size(); ++k) model[k] += w.model[k] / static_cast<double>(workers_.size());
      }
    }
    finish(outcome_, computed_);
    return std::move(outcome_);
  }

 private:
  struct Worker {
    Vector model;  ///< Pairs: its own, which others change too.
    Vector taken;  ///< What its gradient is computed at.
    Momentum momentum;
    Version t{0};
    std::int64_t changes = 0, changes_when_taken = 0;
  };
  struct Due {
    enum class What { step_ends, arrives, goes_on };
    Instant at;
    What what;
    Rank rank;
    bool operator>(const Due& other) const {
      return std::tie(at, what, rank) > std::tie(other.at, other.what, other.rank);
    }
  };

  Worker& worker(Rank rank) { return workers_[static_cast<std::size_t>(rank.value)]; }

  void begin(Rank rank) {
    Worker& w = worker(rank);
    w.taken = rules_.partner ? w.model : server_;
    w.changes_when_taken = w.changes;
    engine_.on_pull(rank);
    due_.push({now_ + world_.compute(rank, w.t), Due::What::step_ends, rank});
  }

  void finish_step(Rank rank) {
    Worker& w = worker(rank);
    computed_[static_cast<std::size_t>(rank.value)] += world_.compute(rank, w.t);
    const Duration trip = message_time();
    if (trip == Duration::zero()) return meet(rank);
    due_.push({take_link(trip), Due::What::arrives, rank});
  }

  /// All pushes and pulls go through the server's link, one after the other; pairs have links of their own.
  Instant take_link(Duration trip) {
    if (rules_.partner) return now_ + trip;
    link_free_ = std::max(link_free_, now_) + trip;
    return link_free_;
  }
  Duration message_time() const {
    const double bytes =
        world_.model_bytes > 0 ? world_.model_bytes : static_cast<double>(server_.size()) * sizeof(double);
    return world_.network.time(1, bytes);
  }

  /// Its gradient is at the server, or its partner has its model.
  void meet(Rank rank) {
    Worker& w = worker(rank);
    auto [gradient, loss] = learner_.gradient(rank, w.t, w.taken);
    Row row{.worker = rank, .step = w.t, .time = now_ - Instant{}, .group = {rank}, .loss = loss};
    if (rules_.partner) {
      row.fresh = w.changes == w.changes_when_taken;
      row.group = average(rank);
      step(learner_, w.momentum, w.model, gradient);
      ++w.changes;
      row.model = w.model;
    } else {
      const auto what = engine_.on_push(rank);
      row.fresh = what.staleness == 0;
      push(gradient, what.scale);
      row.model = server_;
    }
    outcome_.rows.push_back(std::move(row));
    const bool last = w.t == world_.last;
    w.t = w.t.next();
    for (Rank free : engine_.on_done(rank, last)) {
      if (!rules_.partner && world_.network.takes_time()) {
        due_.push({take_link(message_time()), Due::What::goes_on, free});
      } else if (free == rank) {
        begin(rank);  // It pulls what it has pushed.
      } else {
        waited_.push_back(free);  // Pulls when all pushes of this instant are in.
      }
    }
  }

  /// Returns who took part.
  Members average(Rank rank) {
    const auto other = rules_.partner(rank, worker(rank).t);
    if (!other) return {rank};
    Vector& mine = worker(rank).model;
    Vector& theirs = worker(*other).model;
    for (std::size_t k = 0; k < mine.size(); ++k) mine[k] = theirs[k] = (mine[k] + theirs[k]) / 2;
    ++worker(*other).changes;
    count(outcome_.summary, 2, static_cast<std::int64_t>(mine.size()));
    return {std::min(rank, *other), std::max(rank, *other)};
  }

  void push(const Vector& gradient, double scale) {
    Learner scaled = learner_;
    scaled.lr *= scale;
    step(scaled, momentum_, server_, gradient);
    count(outcome_.summary, 2, static_cast<std::int64_t>(server_.size()));
  }

  const World& world_;
  const Learner& learner_;
  const AsynchronousRules& rules_;
  scheduler::ServerEngine engine_;
  Instant now_{};
  std::vector<Worker> workers_;
  Vector server_;
  Momentum momentum_;
  std::vector<Rank> waited_;
  std::vector<Duration> computed_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  Instant link_free_{};
  Outcome outcome_;
};

}  // namespace

Outcome simulate_asynchronous(const World& world, const Learner& learner, const AsynchronousRules& rules) {
  return AsynchronousSimulation(world, learner, rules).run();
}

}  // namespace paceline::simulate
