#include <algorithm>

#include "tests/support/reference/internal.h"

namespace paceline::reference {
namespace {

/// server(async) and server(bounded): pushes update the server one by one, in worker order at one instant.
class Server {
 public:
  explicit Server(Run& run)
      : run_(run), bounded_(run.strategy.server == Strategy::Server::bounded), optimiser_(run.optimiser()) {
    x_ = run.job.start.front();
    for (int i = 0; i < run.workers; ++i)
      workers_.push_back({.pulled = x_, .version = 0, .done = 0, .ends = run.compute(0, i), .waiting = false});
  }

  void operator()() {
    for (Time now = next_instant(); now != kNever; now = next_instant()) {
      for (int i = 0; i < run_.workers; ++i)
        if (worker(i).ends == now) push(i, now);
      for (int i = 0; i < run_.workers; ++i)
        if (worker(i).waiting) pull_if_allowed(i, now);
    }
    run_.models = {x_};
  }

 private:
  struct Worker {
    Vector pulled;
    int version;  ///< Of the server, when it pulled.
    int done;     ///< Steps.
    Time ends;
    bool waiting;
  };

  Worker& worker(int i) { return workers_[static_cast<std::size_t>(i)]; }

  Time next_instant() const {
    return std::min_element(workers_.begin(), workers_.end(),
                            [](const Worker& a, const Worker& b) { return a.ends < b.ends; })
        ->ends;
  }

  void push(int i, Time now) {
    Worker& w = worker(i);
    const int staleness = version_ - w.version;
    const auto scale = run_.strategy.scale;
    optimiser_.lr = run_.job.lr;
    if (scale == Strategy::Scale::p) optimiser_.lr /= run_.workers;
    if (scale == Strategy::Scale::staleness) optimiser_.lr /= std::max(1, staleness);
    optimiser_.step(x_, gradient_at(run_.objective(i), w.pulled));
    ++version_;
    run_.computed[static_cast<std::size_t>(i)] += run_.compute(w.done, i);
    run_.count(2, run_.model_bytes());
    run_.row({.worker = i,
              .step = w.done,
              .model = x_,
              .fresh = staleness == 0,
              .group = {i},
              .loss = loss_at(run_.objective(i), w.pulled)},
             now);
    ++w.done;
    w.ends = kNever;
    w.waiting = w.done < run_.job.steps;
    if (w.waiting) pull_if_allowed(i, now);
  }

  void pull_if_allowed(int i, Time now) {
    Worker& w = worker(i);
    const int slowest = std::min_element(workers_.begin(), workers_.end(), [](const Worker& a, const Worker& b) {
                          return a.done < b.done;
                        })->done;
    if (bounded_ && w.done - slowest > run_.strategy.bound) return;
    w.pulled = x_;
    w.version = version_;
    w.waiting = false;
    w.ends = now + run_.compute(w.done, i);
  }

  Run& run_;
  bool bounded_;
  Optimiser optimiser_;
  Vector x_;
  int version_ = 0;  ///< Pushes.
  std::vector<Worker> workers_;
};

}  // namespace

void run_server(Run& run) { Server{run}(); }

}  // namespace paceline::reference
