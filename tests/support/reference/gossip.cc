#include <algorithm>

#include "tests/support/reference/internal.h"

// Averaging with neighbours: d-psgd, matcha, ad-psgd.

namespace paceline::reference {

/// ATC waits for the neighbours' steps, CTA for their models of the step's start only.
void run_gossip(Run& run) {
  const Kind kind = run.strategy.kind;
  const bool atc = kind == Kind::matcha || run.strategy.atc;
  Locals w(run);
  for (int t = 0; t < run.job.steps; ++t) {
    const Matrix weights = mixing(run, kind, t);
    const std::vector<Vector> before = w.x;
    const std::vector<Time> began = w.now;
    w.step(t);
    const std::vector<Time> ended = w.now;
    for (int i = 0; i < run.workers; ++i) {
      Time& now = w.now[static_cast<std::size_t>(i)];
      for (const int j : members_of(weights, i))
        now = std::max(now, (atc ? ended : began)[static_cast<std::size_t>(j)]);
    }
    if (atc) {
      w.x = mixed(weights, w.x);
    } else {
      const std::vector<Vector> combined = mixed(weights, before);
      for (std::size_t i = 0; i < w.x.size(); ++i) w.x[i] = plus(combined[i], minus(w.x[i], before[i]));
    }
    for (int i = 0; i < run.workers; ++i) w.write(t, i, members_of(weights, i), 1);
    run.count(edges_of(weights), run.model_bytes());
  }
  run.models = w.x;
}

/// Each step: copy the model, take its gradient, average with the partner as it is then, apply the gradient.
void run_ad_psgd(Run& run) {
  struct Worker {
    Vector x, copy;
    Optimiser optimiser;
    Time ends = 0;
    int t = 0;
    bool touched = false;  ///< By others since it copied.
  };
  std::vector<Worker> workers;
  for (int i = 0; i < run.workers; ++i) {
    const Vector& start = run.job.start[static_cast<std::size_t>(i)];
    workers.push_back({.x = start, .copy = start, .optimiser = run.optimiser(), .ends = run.compute(0, i)});
  }
  const auto& partners = run.strategy.partners;
  while (true) {
    const auto next = std::min_element(workers.begin(), workers.end(),
                                       [](const Worker& a, const Worker& b) { return a.ends < b.ends; });
    if (next->ends == kNever) break;
    Worker& w = *next;  // The first in worker order of those that end now.
    const int i = static_cast<int>(next - workers.begin());
    const int j = partners[static_cast<std::size_t>(w.t) % partners.size()][static_cast<std::size_t>(i)];
    if (j != i) {
      Worker& partner = workers[static_cast<std::size_t>(j)];
      w.x = partner.x = divided(plus(w.x, partner.x), 2);
      partner.touched = true;
      run.count(2, run.model_bytes());
    }
    const Vector before = w.copy;
    w.optimiser.step(w.copy, gradient_at(run.objective(i), before));
    w.x = plus(w.x, minus(w.copy, before));
    run.computed[static_cast<std::size_t>(i)] += run.compute(w.t, i);
    run.row({.worker = i,
             .step = w.t,
             .model = w.x,
             .fresh = !w.touched,
             .group = j == i ? std::vector{i} : std::vector{std::min(i, j), std::max(i, j)},
             .loss = loss_at(run.objective(i), before)},
            w.ends);
    ++w.t;
    w.copy = w.x;
    w.touched = false;
    w.ends = w.t < run.job.steps ? w.ends + run.compute(w.t, i) : kNever;
  }
  for (const Worker& w : workers) run.models.push_back(w.x);
}

}  // namespace paceline::reference
