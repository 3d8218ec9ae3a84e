#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/support/reference/reference.h"

/// What the parts of the reference share; not for its users.
namespace paceline::reference {

using Time = std::int64_t;
using Kind = Strategy::Kind;
inline constexpr Time kNever = std::numeric_limits<Time>::max();

inline Time nanoseconds(double s) { return std::llround(s * 1e9); }

inline Vector sum_of(const std::vector<Vector>& terms) {
  Vector sum(terms.front().size(), 0.0);
  for (const Vector& term : terms)
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += term[k];
  return sum;
}

inline Vector divided(Vector v, double divisor) {
  for (double& x : v) x /= divisor;
  return v;
}

inline std::vector<int> everyone(int workers) {
  std::vector<int> all(static_cast<std::size_t>(workers));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

inline double loss_at(const Objective& o, const Vector& x) {
  double loss = 0;
  for (std::size_t k = 0; k < x.size(); ++k) loss += 0.5 * o.a[k] * (x[k] - o.c[k]) * (x[k] - o.c[k]);
  return loss;
}

inline Vector gradient_at(const Objective& o, const Vector& x) {
  Vector g(x.size());
  for (std::size_t k = 0; k < x.size(); ++k) g[k] = o.a[k] * (x[k] - o.c[k]);
  return g;
}

/// SGD with momentum in PyTorch's form: the first buffer is the first gradient.
struct Optimiser {
  double lr, momentum;
  bool nesterov;
  Vector buffer = {};

  void step(Vector& x, const Vector& g) {
    if (momentum == 0) {
      for (std::size_t k = 0; k < x.size(); ++k) x[k] -= lr * g[k];
      return;
    }
    if (buffer.empty()) {
      buffer = g;
    } else {
      for (std::size_t k = 0; k < x.size(); ++k) buffer[k] = momentum * buffer[k] + g[k];
    }
    for (std::size_t k = 0; k < x.size(); ++k) x[k] -= lr * (nesterov ? g[k] + momentum * buffer[k] : buffer[k]);
  }
};

/// What all kinds share: the job, the rows and the books about computing.
struct Run {
  explicit Run(const Job& given)
      : job(given),
        strategy(given.strategy),
        workers(static_cast<int>(given.workers.size())),
        computed(given.workers.size(), 0) {}

  Time compute(int step, int worker) const {
    return nanoseconds(
        job.compute_s[static_cast<std::size_t>(step) % job.compute_s.size()][static_cast<std::size_t>(worker)]);
  }
  const Objective& objective(int i) const { return job.workers[static_cast<std::size_t>(i)]; }
  Optimiser optimiser() const { return {job.lr, job.momentum, job.nesterov}; }
  void row(Row r, Time at) {
    r.time_s = static_cast<double>(at) * 1e-9;
    rows.push_back(std::move(r));
  }
  void sort() {
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      if (a.time_s != b.time_s) return a.time_s < b.time_s;
      return a.worker != b.worker ? a.worker < b.worker : a.step < b.step;
    });
  }

  const Job& job;
  const Strategy& strategy;
  int workers;
  std::vector<Row> rows;
  std::vector<Time> computed;  ///< Nanoseconds of computing that each worker completed by its last row.
  std::vector<Vector> models;  ///< At the end.
};

// One a kind; each writes rows, books and the models at the end.
void run_allreduce(Run& run);
void run_nonblocking(Run& run);
void run_adacomm(Run& run);
void run_decentralised(Run& run);  ///< local-sgd and wagma.

}  // namespace paceline::reference
