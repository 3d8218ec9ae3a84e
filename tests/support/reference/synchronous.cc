#include <algorithm>

#include "tests/support/reference/internal.h"

namespace paceline::reference {

/// One shared model: everybody computes on it, and the update is applied for all at one instant.
void run_shared(Run& run) {
  Vector x = run.job.start.front();
  Optimiser optimiser = run.optimiser();
  Time now = 0;
  const auto change = [&](int after) { run.change(after, [](std::size_t, std::size_t) {}); };
  change(-1);
  for (int t = 0; t < run.job.steps; ++t) {
    std::vector<Vector> gradients;
    Time end = 0;
    for (const int i : run.present) {
      gradients.push_back(gradient_at(run.objective(i), x));
      end = std::max(end, now + run.compute(t, i));
      run.computed[static_cast<std::size_t>(i)] += run.compute(t, i);
    }
    const Vector before = x;
    optimiser.step(x, divided(sum_of(gradients), static_cast<double>(gradients.size())));
    run.count_gradients(run.strategy.kind);
    now = end;
    for (const int i : run.present)
      run.row({.worker = i, .step = t, .model = x, .group = run.present, .loss = loss_at(run.objective(i), before)},
              now);
    change(t);
  }
  run.models = {x};
}

}  // namespace paceline::reference
