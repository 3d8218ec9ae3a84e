#include <algorithm>

#include "tests/support/reference/internal.h"

namespace paceline::reference {

/// One shared model: everybody computes on it, and the update is applied for all at one instant.
void run_shared(Run& run) {
  Vector x = run.job.start.front();
  Optimiser optimiser = run.optimiser();
  Time now = 0;
  for (int t = 0; t < run.job.steps; ++t) {
    std::vector<Vector> gradients;
    Time end = 0;
    for (int i = 0; i < run.workers; ++i) {
      gradients.push_back(gradient_at(run.objective(i), x));
      end = std::max(end, now + run.compute(t, i));
      run.computed[static_cast<std::size_t>(i)] += run.compute(t, i);
    }
    const Vector before = x;
    optimiser.step(x, divided(sum_of(gradients), run.workers));
    run.count_gradients(run.strategy.kind);
    now = end;
    for (int i = 0; i < run.workers; ++i)
      run.row({.worker = i,
               .step = t,
               .model = x,
               .group = everyone(run.workers),
               .loss = loss_at(run.objective(i), before)},
              now);
  }
  run.models.assign(static_cast<std::size_t>(run.workers), x);
}

}  // namespace paceline::reference
