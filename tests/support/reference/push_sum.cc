#include <algorithm>
#include <compare>
#include <map>

#include "tests/support/reference/internal.h"

// Gossip on numerators x and weights w; gradients are taken at z = x / w, and steps are added to x.

namespace paceline::reference {

void run_sgp(Run& run) {
  Locals at_z(run);  // Its models are the de-biased ones.
  std::vector<Vector> x = run.job.start;
  std::vector<Vector> w(x.size(), {1.0});
  for (int t = 0; t < run.job.steps; ++t) {
    const Matrix p = push_matrix(out_neighbours(run, t));
    const std::vector<Vector> z = at_z.x;
    at_z.step(t);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = plus(x[i], minus(at_z.x[i], z[i]));
    x = mixed(p, x);
    w = mixed(p, w);
    const std::vector<Time> ended = at_z.now;
    for (int i = 0; i < run.workers; ++i) {
      const auto at = static_cast<std::size_t>(i);
      at_z.x[at] = divided(x[at], w[at][0]);
      for (const int j : members_of(p, i)) at_z.now[at] = std::max(at_z.now[at], ended[static_cast<std::size_t>(j)]);
      at_z.write(t, i, members_of(p, i), 1);
      run.rows.back().weight = w[at][0];
    }
    run.count(edges_of(p), run.model_bytes() + 8);
  }
  run.models = {divided(sum_of(x), sum_of(w)[0])};
}

namespace {

/// osgp: an exchange begins with a step and ends with it, or up to bound - 1 steps later; one at a time.
class Overlapped {
 public:
  explicit Overlapped(Run& run) : run_(run) {
    for (int i = 0; i < run.workers; ++i)
      workers_.push_back({.x = run.job.start[static_cast<std::size_t>(i)], .optimiser = run.optimiser()});
    for (int i = 0; i < run.workers; ++i) begin(i, 0);
  }

  void operator()() {
    for (Time now = next_instant(); now != kNever; now = next_instant()) {
      for (int i = 0; i < run_.workers; ++i)
        if (worker(i).ends == now) complete(i);
      receive_all(now);
      for (int i = 0; i < run_.workers; ++i)
        if (worker(i).waits && worker(i).t - worker(i).sent_at + 1 < run_.strategy.bound) go_on_without(i, now);
      receive_all(now);  // Nobody waits for those who have ended just now.
    }
    Vector x = workers_.front().x;
    double w = workers_.front().w;
    for (std::size_t i = 1; i < workers_.size(); ++i) {
      x = plus(x, workers_[i].x);
      w += workers_[i].w;
    }
    for (const auto& [key, mass] : in_flight_) {
      x = plus(x, mass.x);
      w += mass.w;
    }
    run_.models = {divided(x, w)};
  }

 private:
  struct Worker {
    Vector x;
    double w = 1;
    Optimiser optimiser;
    int t = 0;
    int exchange = -1;         ///< The newest that it began.
    bool outstanding = false;  ///< It has not ended yet.
    int sent_at = 0;           ///< Step whose start it began with.
    bool waits = false;        ///< At the end of step t.
    Time ends = kNever;
    Time ended = kNever;  ///< When it had done its last step.
    double loss = 0;
  };
  struct Mass {
    Vector x;
    double w;
  };
  struct Key {
    int exchange, to, from;
    auto operator<=>(const Key&) const = default;
  };

  Worker& worker(int i) { return workers_[static_cast<std::size_t>(i)]; }

  Time next_instant() const {
    return std::min_element(workers_.begin(), workers_.end(),
                            [](const Worker& a, const Worker& b) { return a.ends < b.ends; })
        ->ends;
  }

  void begin(int i, Time now) {
    Worker& w = worker(i);
    if (w.t == run_.job.steps) return;
    w.ends = now + run_.compute(w.t, i);
    if (w.outstanding) return;
    w.outstanding = true;
    w.sent_at = w.t;
    ++w.exchange;
    const std::vector<int> out = out_neighbours(run_, w.exchange)[static_cast<std::size_t>(i)];
    const double parts = static_cast<double>(out.size() + 1);
    const Mass share{divided(w.x, parts), w.w / parts};
    w.x = share.x;
    w.w = share.w;
    for (const int j : out) {
      if (worker(j).ended < now) {  // It takes no more: its share stays.
        w.x = plus(w.x, share.x);
        w.w += share.w;
        continue;
      }
      in_flight_[{w.exchange, j, i}] = share;
      run_.count(1, run_.model_bytes() + 8);
    }
  }

  void complete(int i) {
    Worker& w = worker(i);
    const Vector z = divided(w.x, w.w);
    Vector stepped = z;
    w.loss = loss_at(run_.objective(i), z);
    w.optimiser.step(stepped, gradient_at(run_.objective(i), z));
    w.x = plus(w.x, minus(stepped, z));
    run_.computed[static_cast<std::size_t>(i)] += run_.compute(w.t, i);
    w.ends = kNever;
    w.waits = true;
  }

  std::vector<int> sources(int i) { return members_of(push_matrix(out_neighbours(run_, worker(i).exchange)), i); }

  bool has_sent(int from, int to) { return in_flight_.count({worker(to).exchange, to, from}) > 0; }

  bool has_received(int i) {
    const auto from = sources(i);
    return std::all_of(from.begin(), from.end(),
                       [&](int j) { return j == i || has_sent(j, i) || worker(j).t == run_.job.steps; });
  }

  /// A worker that has received begins, and so sends: somebody else may receive then.
  void receive_all(Time now) {
    for (bool again = true; again;) {
      again = false;
      for (int i = 0; i < run_.workers; ++i) {
        if (!worker(i).waits || !has_received(i)) continue;
        receive(i, now);
        again = true;
      }
    }
  }

  void receive(int i, Time now) {
    Worker& w = worker(i);
    std::vector<int> group;
    for (const int j : sources(i)) {
      if (j != i && !has_sent(j, i)) continue;
      group.push_back(j);
      if (j == i) continue;
      const auto mass = in_flight_.extract({w.exchange, i, j}).mapped();
      w.x = plus(w.x, mass.x);
      w.w += mass.w;
    }
    w.outstanding = false;
    finish(i, now, w.sent_at == w.t, group);
  }

  void go_on_without(int i, Time now) { finish(i, now, true, {i}); }

  void finish(int i, Time now, bool fresh, std::vector<int> group) {
    Worker& w = worker(i);
    run_.row({.worker = i,
              .step = w.t,
              .model = divided(w.x, w.w),
              .fresh = fresh,
              .group = std::move(group),
              .weight = w.w,
              .loss = w.loss},
             now);
    w.waits = false;
    ++w.t;
    if (w.t == run_.job.steps) w.ended = now;
    begin(i, now);
  }

  Run& run_;
  std::vector<Worker> workers_;
  std::map<Key, Mass> in_flight_;
};

}  // namespace

void run_osgp(Run& run) { Overlapped{run}(); }

}  // namespace paceline::reference
