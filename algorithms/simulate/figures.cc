#include "algorithms/simulate/figures.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"

namespace paceline::simulate {
namespace {

/// The workers' models as rows come in. The dead have no say any more.
class Models {
 public:
  explicit Models(const Job& job)
      : job_(job), models_(static_cast<std::size_t>(job.problem->workers()), job.start.at(0)) {
    if (job.start.size() == models_.size()) models_ = job.start;
  }

  void take(const Row& row) { models_[static_cast<std::size_t>(row.worker.value)] = row.model; }

  Vector mean(double time_s) const {
    Vector sum(models_[0].size(), 0);
    double count = 0;
    for (std::size_t i = 0; i < models_.size(); ++i) {
      if (is_dead(i, time_s)) continue;
      for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += models_[i][k];
      ++count;
    }
    for (double& number : sum) number /= count;
    return sum;
  }

  double apart(double time_s) const {
    const Vector middle = mean(time_s);
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < models_.size(); ++i) {
      if (is_dead(i, time_s)) continue;
      for (std::size_t k = 0; k < middle.size(); ++k) sum += std::pow(models_[i][k] - middle[k], 2);
      ++count;
    }
    return std::sqrt(sum / count);
  }

 private:
  bool is_dead(std::size_t worker, double time_s) const {
    return std::any_of(job_.failures.begin(), job_.failures.end(), [&](const Job::Failure& failure) {
      return static_cast<std::size_t>(failure.worker.value) == worker && !failure.down_s && failure.at_s <= time_s;
    });
  }

  const Job& job_;
  std::vector<Vector> models_;
};

}  // namespace

Figures figures_of(const Job& job, const Outcome& outcome, double lowest, BatchesPerStep batches) {
  PACELINE_CHECK(job.problem != nullptr, "figures need a problem");
  Figures figures;
  const double workers = job.problem->workers();
  figures.virtual_s = seconds(outcome.summary.time);
  Models models(job);
  auto row = outcome.rows.begin();
  for (int point = 0; point <= kCurvePoints; ++point) {
    const double time = figures.virtual_s * point / kCurvePoints;
    for (; row != outcome.rows.end() && (seconds(row->time) <= time || point == kCurvePoints); ++row) models.take(*row);
    figures.curve.emplace_back(time, job.problem->objective(models.mean(time)) - lowest);
  }
  for (const Row& each : outcome.rows) {
    figures.batches += static_cast<double>(each.batches_done) * batches.of_row;
    figures.late += each.fresh ? 0 : 1;
  }
  for (const Duration waited : outcome.summary.waited) figures.waited += seconds(waited);
  const double time = std::max(figures.virtual_s, 1e-9);
  figures.batches_per_s = figures.batches / time;
  figures.share_done = figures.batches / (workers * static_cast<double>(job.steps) * batches.of_step);
  figures.waited /= workers * time;
  figures.late /= std::max<double>(1, static_cast<double>(outcome.rows.size()));
  const Vector last = job.failures.empty() ? outcome.summary.model : models.mean(figures.virtual_s);
  figures.loss = job.problem->objective(last) - lowest;
  figures.apart = models.apart(figures.virtual_s);
  figures.messages = static_cast<double>(outcome.summary.messages);
  figures.bytes = static_cast<double>(outcome.summary.bytes);
  return figures;
}

Vector optimum(const std::vector<Quadratic>& workers) {
  Vector result;
  for (std::size_t k = 0; k < workers.at(0).a.size(); ++k) {
    double weight = 0, sum = 0;
    for (const Quadratic& f : workers) {
      weight += f.a[k];
      sum += f.a[k] * f.c[k];
    }
    result.push_back(sum / weight);
  }
  return result;
}

}  // namespace paceline::simulate
