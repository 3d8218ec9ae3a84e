#include "tests/support/reference/internal.h"

// bmuf, slowmo, diloco: local SGD whose blocks end with an outer step on the mean.

namespace paceline::reference {
namespace {

/// Where the job stands, and where the next block starts.
struct Outer {
  Vector w;
  Vector start;
  Vector buffer = {};

  void step(const Strategy& s, int workers, const Vector& mean) {
    if (s.kind == Kind::bmuf) {
      const double eta = s.eta_b.value_or(1.0 - 1.0 / workers);
      if (buffer.empty()) buffer.assign(w.size(), 0.0);
      for (std::size_t k = 0; k < w.size(); ++k) {
        buffer[k] = eta * buffer[k] + s.zeta * (mean[k] - start[k]);
        w[k] += buffer[k];
        start[k] = s.nesterov_blocks ? w[k] + eta * buffer[k] : w[k];
      }
      return;
    }
    // slowmo's buffer is kept as gamma u, which is the same under one learning rate.
    const Vector moved = minus(start, mean);
    buffer = buffer.empty() ? moved : plus(moved, buffer, s.outer_momentum);
    for (std::size_t k = 0; k < w.size(); ++k) {
      const double direction = s.kind == Kind::slowmo ? buffer[k] : moved[k] + s.outer_momentum * buffer[k];
      w[k] = start[k] - s.outer_lr * direction;
    }
    start = w;
  }
};

}  // namespace

void run_outer(Run& run) {
  const Strategy& s = run.strategy;
  Locals workers(run);
  const Vector first = divided(sum_of(workers.x), run.workers);
  Outer outer{.w = first, .start = first};
  workers.change(-1);
  for (int t = 0; t < run.job.steps; ++t) {
    const auto all = run.present;
    workers.step(t);
    const bool block_ends = (t + 1) % s.period == 0 || (run.job.final_sync && run.is_last(t));
    if (block_ends) {
      outer.step(s, run.workers, workers.meet(all));
      std::fill(workers.x.begin(), workers.x.end(), outer.start);
      if (s.kind == Kind::bmuf)
        for (Optimiser& optimiser : workers.optimisers) optimiser.buffer.clear();
    }
    for (const int i : all) workers.write(t, i, block_ends ? all : std::vector<int>{i}, s.period);
    if (block_ends) workers.change(t);
    run.models = block_ends ? std::vector<Vector>{outer.w} : run.of_present(workers.x);
  }
}

}  // namespace paceline::reference
