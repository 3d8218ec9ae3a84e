#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "tests/support/reference/reference.h"

/// What the parts of the reference share; not for its users.
namespace paceline::reference {

using Time = std::int64_t;
using Kind = Strategy::Kind;
using Matrix = std::vector<Vector>;  ///< Row i: what worker i receives of each.
inline constexpr Time kNever = std::numeric_limits<Time>::max();

inline Time nanoseconds(double s) { return std::llround(s * 1e9); }

inline Vector plus(Vector a, const Vector& b, double factor = 1) {
  for (std::size_t k = 0; k < a.size(); ++k) a[k] += factor * b[k];
  return a;
}

inline Vector minus(Vector a, const Vector& b) { return plus(std::move(a), b, -1); }

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

/// What all kinds share: the job, the rows and the books about computing and sending.
struct Run {
  explicit Run(const Job& given)
      : job(given),
        strategy(given.strategy),
        workers(static_cast<int>(given.workers.size())),
        computed(given.workers.size(), 0),
        present(everyone(workers)) {}

  /// Whoever takes part from step `after` + 1 on; calls `join(who, of)` for those that come, with whose state they do.
  template <class Join>
  void change(int after, const Join& join) {
    for (const Job::View& view : job.views) {
      if (view.after != after) continue;
      for (const int i : view.leave) std::erase(present, i);
      const int donor = *std::min_element(present.begin(), present.end());
      for (const int i : view.join) {
        join(static_cast<std::size_t>(i), static_cast<std::size_t>(donor));
        present.push_back(i);
      }
      std::sort(present.begin(), present.end());
    }
  }

  /// Of those who take part.
  std::vector<Vector> of_present(const std::vector<Vector>& x) const {
    std::vector<Vector> theirs;
    for (const int i : present) theirs.push_back(x[static_cast<std::size_t>(i)]);
    return theirs;
  }

  Time compute(int step, int worker) const {
    return nanoseconds(
        job.compute_s[static_cast<std::size_t>(step) % job.compute_s.size()][static_cast<std::size_t>(worker)]);
  }
  const Objective& objective(int i) const { return job.workers[static_cast<std::size_t>(i)]; }
  Optimiser optimiser() const { return {job.lr, job.momentum, job.nesterov}; }
  bool is_last(int step) const { return step == job.steps - 1; }
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

  std::int64_t model_bytes() const { return 8 * static_cast<std::int64_t>(job.start.front().size()); }
  void count(std::int64_t how_many, std::int64_t bytes_each) {
    messages += how_many;
    bytes += how_many * bytes_each;
  }
  void count_ring(std::int64_t members) {
    messages += 2 * members * (members - 1);
    bytes += 2 * (members - 1) * model_bytes();
  }
  /// Everybody's gradient, combined over a server or in a ring.
  void count_gradients(Kind over) {
    if (over == Kind::server) {
      count(2 * static_cast<std::int64_t>(present.size()), model_bytes());
    } else {
      count_ring(static_cast<std::int64_t>(present.size()));
    }
  }

  const Job& job;
  const Strategy& strategy;
  int workers;
  std::vector<Row> rows;
  std::vector<Time> computed;  ///< Nanoseconds of computing that each worker completed by its last row.
  std::vector<Vector> models;  ///< At the end; their mean is the summary's.
  std::vector<int> present;    ///< Who takes part.
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
};

/// Workers that are all at the same iteration, each with its own model, buffer and time.
struct Locals {
  explicit Locals(Run& of);
  void change(int after);                        ///< Who takes part.
  void step(int t);                              ///< Their local step.
  Vector meet(const std::vector<int>& members);  ///< They wait for the last of them; the mean of their models.
  void write(int t, int i, std::vector<int> group, int period);

  Run& run;
  std::vector<Vector> x;
  std::vector<Optimiser> optimisers;
  std::vector<Time> now;
  std::vector<double> loss;  ///< Before the step.
};

/// AdaComm: eq. 20's candidate (eq. 17 with equal learning rates) and eq. 18's choice.
double candidate_period(int first_period, double loss, double first_loss, double first_lr, double lr);
int next_period(int period, double candidate, double gamma, double slack);
/// The same for a whole run: averages tell it their loss and time. Also for qsr, which hears of neither.
class AdaptivePeriod {
 public:
  AdaptivePeriod(const Job& job, bool qsr) : job_(job), qsr_(qsr), period(job.strategy.period) {}
  void on_average(double loss, Time at);

 private:
  const Job& job_;
  bool qsr_;
  std::optional<double> first_loss_;
  Time next_boundary_ = nanoseconds(job_.strategy.interval_s);

 public:
  int period;
};

/// Graphs (graphs.cc).
Matrix mixing(const Run& run, Kind kind, int t);      ///< d_psgd, matcha, hier_avg.
Digraph out_neighbours(const Run& run, int t);        ///< sgp, osgp; without the workers themselves.
Matrix push_matrix(const Digraph& out);               ///< Column-stochastic, uniform shares.
std::vector<int> members_of(const Matrix& w, int i);  ///< Itself and whom it receives from.
std::int64_t edges_of(const Matrix& w);               ///< Directed, without loops.
std::vector<Vector> mixed(const Matrix& w, const std::vector<Vector>& x);

// One a kind; each writes rows, books and the models at the end.
void run_shared(Run& run);  ///< allreduce and server(sync).
void run_nonblocking(Run& run);
void run_adaptive(Run& run);  ///< adacomm and qsr.
void run_hier_avg(Run& run);
void run_outer(Run& run);          ///< bmuf, slowmo, diloco.
void run_wait_avoiding(Run& run);  ///< local-sgd, post-local, wagma and tiers.
void run_views(Run& run);          ///< local-sgd and post-local that wait, where workers leave and join.
void run_eager(Run& run);
void run_gossip(Run& run);  ///< d-psgd and matcha.
void run_sgp(Run& run);
void run_osgp(Run& run);
void run_server(Run& run);  ///< async and bounded.
void run_ad_psgd(Run& run);
void run_decoupled(Run& run);  ///< decoupled-diloco.
void run_exchanges(Run& run);  ///< streaming-diloco and noloco.

}  // namespace paceline::reference
