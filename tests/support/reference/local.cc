#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <optional>

#include "tests/support/reference/internal.h"

// Local steps between meetings that wait for everybody concerned: what all of these share, adaptive periods, hier-avg.

namespace paceline::reference {

Locals::Locals(Run& of)
    : run(of), x(of.job.start), optimisers(x.size(), of.optimiser()), now(x.size(), 0), loss(x.size(), 0) {}

void Locals::change(int after) {
  run.change(after, [this](std::size_t who, std::size_t of) {
    x[who] = x[of];
    optimisers[who] = optimisers[of];
    now[who] = now[of];
  });
}

void Locals::step(int t) {
  for (const int worker : run.present) {
    const auto i = static_cast<std::size_t>(worker);
    const Objective& objective = run.objective(worker);
    loss[i] = loss_at(objective, x[i]);
    optimisers[i].step(x[i], gradient_at(objective, x[i]));
    now[i] += run.compute(t, worker);
    run.computed[i] += run.compute(t, worker);
  }
}

Vector Locals::meet(const std::vector<int>& members) {
  Time last = 0;
  std::vector<Vector> models;
  for (const int i : members) {
    last = std::max(last, now[static_cast<std::size_t>(i)]);
    models.push_back(x[static_cast<std::size_t>(i)]);
  }
  for (const int i : members) now[static_cast<std::size_t>(i)] = last;
  run.count_ring(static_cast<std::int64_t>(members.size()));
  return divided(sum_of(models), static_cast<double>(models.size()));
}

void Locals::write(int t, int i, std::vector<int> group, int period) {
  const auto at = static_cast<std::size_t>(i);
  run.row({.worker = i, .step = t, .model = x[at], .group = std::move(group), .period = period, .loss = loss[at]},
          now[at]);
}

namespace {
double ceiling(double v) { return std::ceil(v - 1e-9); }
int squared_period(double alpha, double lr) {
  return lr == 0 ? 1'000'000'000 : static_cast<int>(std::min(1e9, std::floor(alpha / lr * (alpha / lr) + 1e-9)));
}
}  // namespace

double candidate_period(int first_period, double loss, double first_loss, double first_lr, double lr) {
  if (first_loss == 0) return 1;
  return std::max(1.0, ceiling(std::sqrt(first_lr / lr * loss / first_loss) * first_period));
}

int next_period(int period, double candidate, double gamma, double slack) {
  if (candidate + slack < period) return static_cast<int>(candidate);
  return static_cast<int>(std::max(1.0, std::min<double>(period - 1, ceiling(gamma * period))));
}

void AdaptivePeriod::on_average(double loss, Time at) {
  const Strategy& s = job_.strategy;
  if (qsr_) {
    period = std::max(s.period, squared_period(s.qsr_alpha, job_.lr));
    return;
  }
  if (!first_loss_) first_loss_ = loss;
  if (at < next_boundary_) return;
  while (next_boundary_ <= at) next_boundary_ += nanoseconds(s.interval_s);
  const double candidate = candidate_period(s.period, loss, *first_loss_, job_.lr, job_.lr);
  period = next_period(period, candidate, s.gamma, s.slack);
}

void run_adaptive(Run& run) {
  const Strategy& s = run.strategy;
  Locals w(run);
  std::vector<std::deque<double>> losses(w.x.size());
  Vector anchor = divided(sum_of(w.x), run.workers), buffer(anchor.size(), 0.0);
  AdaptivePeriod tau(run.job, s.kind == Kind::qsr);
  int last_sync = -1;
  const auto change = [&](int after) {
    const auto before = run.present;
    w.change(after);
    for (const int i : run.present)
      if (!std::binary_search(before.begin(), before.end(), i)) losses[static_cast<std::size_t>(i)].clear();
  };
  change(-1);
  for (int t = 0; t < run.job.steps; ++t) {
    const auto all = run.present;
    w.step(t);
    for (const int worker : all) {
      const auto i = static_cast<std::size_t>(worker);
      losses[i].push_back(w.loss[i]);
      if (losses[i].size() > static_cast<std::size_t>(s.loss_window)) losses[i].pop_front();
    }
    if (t - last_sync < tau.period && !(run.job.final_sync && run.is_last(t))) {
      for (const int i : all) w.write(t, i, {i}, tau.period);
      continue;
    }
    Vector next = w.meet(all);
    if (s.block_momentum > 0) {
      for (std::size_t k = 0; k < next.size(); ++k) {
        buffer[k] = s.block_momentum * buffer[k] + (anchor[k] - next[k]) / run.job.lr;
        next[k] = anchor[k] - run.job.lr * buffer[k];
      }
      anchor = next;
      for (Optimiser& optimiser : w.optimisers) optimiser.buffer.clear();
    }
    std::fill(w.x.begin(), w.x.end(), next);
    for (const int i : all) w.write(t, i, all, tau.period);
    last_sync = t;
    double estimate = 0;
    for (const int i : all) {
      const auto& window = losses[static_cast<std::size_t>(i)];
      estimate += std::accumulate(window.begin(), window.end(), 0.0) / static_cast<double>(window.size());
    }
    estimate /= static_cast<double>(all.size());
    tau.on_average(estimate, w.now[static_cast<std::size_t>(all.front())]);
    change(t);
  }
  run.models = run.of_present(w.x);
}

void run_hier_avg(Run& run) {
  const Strategy& s = run.strategy;
  Locals w(run);
  int done = 0;  // Steps since the last average of all.
  for (int t = 0; t < run.job.steps; ++t) {
    w.step(t);
    ++done;
    const bool global = done == s.k2 || (run.job.final_sync && run.is_last(t));
    const int size = global ? run.workers : done % s.k1 == 0 ? s.group : 1;
    for (int first = 0; first < run.workers; first += size) {
      std::vector<int> members(static_cast<std::size_t>(std::min(size, run.workers - first)));
      std::iota(members.begin(), members.end(), first);
      const Vector mean = w.meet(members);
      for (const int i : members) {
        w.x[static_cast<std::size_t>(i)] = mean;
        w.write(t, i, members, s.k2);
      }
    }
    if (global) done = 0;
  }
  run.models = w.x;
}

void run_views(Run& run) {
  const Strategy& s = run.strategy;
  const int warmup = s.kind == Kind::post_local ? s.warmup : 0;
  Locals w(run);
  w.change(-1);
  for (int t = 0; t < run.job.steps; ++t) {
    const auto all = run.present;
    if (t < warmup) {  // Gradients of all, each with its own buffer.
      std::vector<Vector> gradients;
      for (const int worker : all) {
        const auto i = static_cast<std::size_t>(worker);
        w.loss[i] = loss_at(run.objective(worker), w.x[i]);
        gradients.push_back(gradient_at(run.objective(worker), w.x[i]));
        w.now[i] += run.compute(t, worker);
        run.computed[i] += run.compute(t, worker);
      }
      const Vector mean = divided(sum_of(gradients), static_cast<double>(all.size()));
      (void)w.meet(all);
      for (const int worker : all)
        w.optimisers[static_cast<std::size_t>(worker)].step(w.x[static_cast<std::size_t>(worker)], mean);
      for (const int i : all) w.write(t, i, all, 1);
      w.change(t);
      continue;
    }
    w.step(t);
    const bool meets = (t + 1 - warmup) % s.period == 0 || (run.job.final_sync && run.is_last(t));
    if (meets) {
      const Vector mean = w.meet(all);
      for (const int i : all) w.x[static_cast<std::size_t>(i)] = mean;
    }
    for (const int i : all) w.write(t, i, meets ? all : std::vector<int>{i}, s.period);
    if (meets) w.change(t);
  }
  run.models = run.of_present(w.x);
}

}  // namespace paceline::reference
