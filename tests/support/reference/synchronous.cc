#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <optional>

#include "tests/support/reference/internal.h"

namespace paceline::reference {

/// One shared model: everybody computes on it, and the update is applied for all at one instant.
void run_allreduce(Run& run) {
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

/// inflight=drop: an iteration ends when the first worker has completed N mini-batches; a mini-batch in flight ends in
/// vain.
void run_nonblocking(Run& run) {
  struct Busy {
    Time until = 0;
    Time length = 0;
  };  // The mini-batch in flight.
  const int batches = run.strategy.batches;
  Vector x = run.job.start.front();
  Optimiser optimiser = run.optimiser();
  std::vector<Busy> busy(static_cast<std::size_t>(run.workers));
  Time begin = 0;
  for (int t = 0; t < run.job.steps; ++t) {
    Time signal = kNever;
    for (int i = 0; i < run.workers; ++i)
      signal = std::min(signal, std::max(begin, busy[static_cast<std::size_t>(i)].until) + batches * run.compute(t, i));
    Vector combined(x.size(), 0.0);
    std::vector<Time> done;
    for (int i = 0; i < run.workers; ++i) {
      Busy& flight = busy[static_cast<std::size_t>(i)];
      const Time at = std::max(begin, flight.until), length = run.compute(t, i);
      const Time n = at >= signal ? 0 : (signal - at) / length;
      done.push_back(n);
      Time& computed = run.computed[static_cast<std::size_t>(i)];
      if (flight.until > begin && flight.until <= signal) computed += flight.length;
      computed += n * length;
      if (at < signal) flight = (signal - at) % length == 0 ? Busy{signal, 0} : Busy{at + (n + 1) * length, length};
    }
    const double total = static_cast<double>(std::accumulate(done.begin(), done.end(), Time{0}));
    for (int i = 0; i < run.workers; ++i) {
      const double n = static_cast<double>(done[static_cast<std::size_t>(i)]), share = n / batches;
      const double weight = run.strategy.normalise == 'd'   ? (total > 0 ? n / total : 0)
                            : run.strategy.normalise == 'a' ? share * share / run.workers
                                                            : share / run.workers;
      const Vector g = gradient_at(run.objective(i), x);
      for (std::size_t k = 0; k < x.size(); ++k) combined[k] += weight * g[k];
    }
    const Vector before = x;
    optimiser.step(x, combined);
    for (int i = 0; i < run.workers; ++i) {
      const int n = static_cast<int>(done[static_cast<std::size_t>(i)]);
      run.row({.worker = i,
               .step = t,
               .model = x,
               .fresh = n > 0,
               .group = everyone(run.workers),
               .batches_done = n,
               .loss = loss_at(run.objective(i), before)},
              signal);
    }
    begin = signal;
  }
  run.models.assign(static_cast<std::size_t>(run.workers), x);
}

/// Local steps, everybody meets at the syncs; the period may move.
void run_adacomm(Run& run) {
  const Strategy& s = run.strategy;
  const auto P = static_cast<std::size_t>(run.workers);
  std::vector<Vector> x = run.job.start;
  std::vector<Optimiser> optimisers(P, run.optimiser());
  std::vector<Time> now(P, 0);
  std::vector<std::deque<double>> losses(P);
  Vector anchor = divided(sum_of(x), run.workers), buffer(anchor.size(), 0.0);
  int tau = s.period, last_sync = -1;
  std::optional<double> first_loss;
  Time next_boundary = nanoseconds(s.interval_s);
  for (int t = 0; t < run.job.steps; ++t) {
    const bool sync = t - last_sync == tau || (run.job.final_sync && t == run.job.steps - 1);
    std::vector<double> loss(P);
    for (std::size_t i = 0; i < P; ++i) {
      const int worker = static_cast<int>(i);
      loss[i] = loss_at(run.objective(worker), x[i]);
      losses[i].push_back(loss[i]);
      if (losses[i].size() > static_cast<std::size_t>(s.loss_window)) losses[i].pop_front();
      optimisers[i].step(x[i], gradient_at(run.objective(worker), x[i]));
      now[i] += run.compute(t, worker);
      run.computed[i] += run.compute(t, worker);
    }
    if (!sync) {
      for (std::size_t i = 0; i < P; ++i) {
        const int worker = static_cast<int>(i);
        run.row({.worker = worker, .step = t, .model = x[i], .group = {worker}, .period = tau, .loss = loss[i]},
                now[i]);
      }
      continue;
    }
    const Time at = *std::max_element(now.begin(), now.end());
    Vector next = divided(sum_of(x), run.workers);
    if (s.block_momentum > 0) {
      for (std::size_t k = 0; k < next.size(); ++k) {
        buffer[k] = s.block_momentum * buffer[k] + (anchor[k] - next[k]) / run.job.lr;
        next[k] = anchor[k] - run.job.lr * buffer[k];
      }
      anchor = next;
      for (Optimiser& optimiser : optimisers) optimiser.buffer.clear();
    }
    for (std::size_t i = 0; i < P; ++i) {
      x[i] = next;
      now[i] = at;
      run.row({.worker = static_cast<int>(i),
               .step = t,
               .model = next,
               .group = everyone(run.workers),
               .period = tau,
               .loss = loss[i]},
              at);
    }
    last_sync = t;
    double estimate = 0;
    for (const auto& window : losses)
      estimate += std::accumulate(window.begin(), window.end(), 0.0) / static_cast<double>(window.size());
    estimate /= static_cast<double>(P);
    if (!first_loss) first_loss = estimate;
    if (at < next_boundary) continue;
    while (next_boundary <= at) next_boundary += nanoseconds(s.interval_s);
    const auto ceiling = [](double v) { return std::ceil(v - 1e-9); };
    const double c = *first_loss == 0 ? 1 : std::max(1.0, ceiling(std::sqrt(estimate / *first_loss) * s.period));
    if (c + s.slack < tau) {
      tau = static_cast<int>(c);
    } else if (tau > 1) {
      tau = static_cast<int>(std::max(1.0, std::min<double>(tau - 1, ceiling(s.gamma * tau))));
    }
  }
  run.models = x;
}

}  // namespace paceline::reference
