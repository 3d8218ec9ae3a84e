#include <algorithm>

#include "tests/support/reference/internal.h"

namespace paceline::reference {
namespace {

/// eager-sgd: a version sums what send buffers hold when its trigger fires; whoever comes later finds it done.
class Eager {
 public:
  explicit Eager(Run& run) : run_(run) {
    for (int i = 0; i < run.workers; ++i) {
      const Vector& start = run.job.start[static_cast<std::size_t>(i)];
      workers_.push_back(
          {.x = start, .optimiser = run.optimiser(), .send = Vector(start.size(), 0.0), .ends = run.compute(0, i)});
    }
  }

  void operator()() {
    for (Time now = next_instant(); now != kNever; now = next_instant()) {
      for (int i = 0; i < run_.workers; ++i)
        if (worker(i).ends == now) complete(i);
      while (is_triggered(done_ + 1)) execute(done_ + 1, now);
      for (int i = 0; i < run_.workers; ++i)
        if (worker(i).arrived && worker(i).t <= done_) merge_late(i, now);
    }
    for (const Worker& w : workers_) run_.models.push_back(w.x);
  }

 private:
  struct Worker {
    Vector x;
    Optimiser optimiser;
    Vector send;  ///< Gradients that no version has summed yet.
    Time ends;
    int t = 0;
    bool arrived = false;  ///< Step t is computed, its version not applied.
    double loss = 0;
  };

  Worker& worker(int i) { return workers_[static_cast<std::size_t>(i)]; }

  Time next_instant() const {
    return std::min_element(workers_.begin(), workers_.end(),
                            [](const Worker& a, const Worker& b) { return a.ends < b.ends; })
        ->ends;
  }

  bool is_sync(int version) const {
    return (run_.strategy.sync > 0 && (version + 1) % run_.strategy.sync == 0) ||
           (run_.job.final_sync && run_.is_last(version));
  }

  bool is_triggered(int version) {
    const Strategy& s = run_.strategy;
    int present = 0;
    for (const Worker& w : workers_) present += w.arrived && w.t == version ? 1 : 0;
    if (is_sync(version)) return present == run_.workers;
    switch (s.trigger) {
      case Strategy::Trigger::solo: return present > 0;
      case Strategy::Trigger::quorum: return present >= s.quorum;
      case Strategy::Trigger::majority: break;
    }
    const Worker& initiator = worker(s.initiators[static_cast<std::size_t>(version) % s.initiators.size()]);
    return initiator.arrived && initiator.t == version;
  }

  void complete(int i) {
    Worker& w = worker(i);
    const Vector gradient = gradient_at(run_.objective(i), w.x);
    w.loss = loss_at(run_.objective(i), w.x);
    w.send = run_.strategy.drop ? gradient : plus(w.send, gradient);
    w.ends = kNever;
    w.arrived = true;
    run_.computed[static_cast<std::size_t>(i)] += run_.compute(w.t, i);
  }

  /// Everyone is there: each steps with what no version has summed yet, and models are averaged.
  void synchronise(int version, Time now) {
    Vector mean(workers_.front().x.size(), 0.0);
    for (Worker& w : workers_) {
      w.optimiser.step(w.x, w.send);
      std::fill(w.send.begin(), w.send.end(), 0.0);
      mean = plus(mean, w.x);
    }
    done_ = version;
    run_.count_ring(run_.workers);
    for (int i = 0; i < run_.workers; ++i) {
      worker(i).x = divided(mean, run_.workers);
      finish(i, now, true);
    }
  }

  void execute(int version, Time now) {
    if (is_sync(version)) return synchronise(version, now);
    newest_ = Vector(workers_.front().x.size(), 0.0);
    for (Worker& w : workers_) {
      newest_ = plus(newest_, w.send);
      std::fill(w.send.begin(), w.send.end(), 0.0);
    }
    newest_ = divided(newest_, run_.workers);
    done_ = version;
    run_.count_ring(run_.workers);
    std::vector<int> punctual;
    for (int i = 0; i < run_.workers; ++i)
      if (worker(i).arrived && worker(i).t == version) punctual.push_back(i);
    for (const int i : punctual) worker(i).optimiser.step(worker(i).x, newest_);
    for (const int i : punctual) finish(i, now, true);
  }

  void merge_late(int i, Time now) {
    Worker& w = worker(i);
    w.optimiser.step(w.x, newest_);
    if (run_.strategy.drop) std::fill(w.send.begin(), w.send.end(), 0.0);
    finish(i, now, false);
  }

  void finish(int i, Time now, bool fresh) {
    Worker& w = worker(i);
    run_.row({.worker = i, .step = w.t, .model = w.x, .fresh = fresh, .group = everyone(run_.workers), .loss = w.loss},
             now);
    w.arrived = false;
    ++w.t;
    if (w.t < run_.job.steps) w.ends = now + run_.compute(w.t, i);
  }

  Run& run_;
  std::vector<Worker> workers_;
  int done_ = -1;  ///< Newest executed version.
  Vector newest_;  ///< Its mean gradient.
};

}  // namespace

void run_eager(Run& run) { Eager{run}(); }

}  // namespace paceline::reference
