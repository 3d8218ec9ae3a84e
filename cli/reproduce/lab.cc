#include "cli/reproduce/lab.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "algorithms/simulate/figures.h"
#include "runtime/base/check.h"

namespace paceline::cli::reproduce {

using simulate::Job;
using simulate::Outcome;
using simulate::Problem;
using simulate::Row;
using simulate::Vector;

Lab::Lab(bool quick, std::function<void()> on_run) : quick_(quick), on_run_(std::move(on_run)) {}

std::int64_t Lab::steps(std::int64_t steps) const { return quick_ ? std::max<std::int64_t>(steps / 10, 20) : steps; }

Spread Lab::over_seeds(const std::function<double(std::uint64_t)>& measure) const {
  Spread spread;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) spread.values.push_back(measure(seed));
  return spread;
}

Outcome Lab::run(const Job& job) const {
  auto outcome = simulate::simulate(job);
  PACELINE_CHECK(outcome.has_value(), outcome ? "" : outcome.error().text.c_str());
  if (on_run_) on_run_();
  return std::move(*outcome);
}

Draw uniform(double least, double most) {
  return [=](simulate::Random& random) { return least + (most - least) * random.uniform(); };
}
Draw exponential() {
  return [](simulate::Random& random) { return std::max(1e-6, -std::log(random.uniform())); };
}

Job job_of(std::shared_ptr<const Problem> problem, const std::string& strategy, std::int64_t steps, std::uint64_t seed,
           const Draw& time) {
  Job job;
  job.start = {Vector(problem->dimensions(), 0)};
  job.strategy = strategy;
  job.steps = steps;
  job.seed = seed;
  job.compute_s.resize(static_cast<std::size_t>(steps));
  for (std::int64_t t = 0; t < steps; ++t) {
    for (std::int32_t i = 0; i < problem->workers(); ++i) {
      simulate::Random random(seed, simulate::Use::compute, {i, t});
      job.compute_s[static_cast<std::size_t>(t)].push_back(time(random));
    }
  }
  job.problem = std::move(problem);
  return job;
}

double step_s(const Job& job, const Outcome& outcome) {
  return seconds(outcome.summary.time) / static_cast<double>(job.steps);
}

std::shared_ptr<const Problem> nothing(std::int32_t workers, std::size_t numbers, double noise, std::uint64_t seed) {
  const simulate::Quadratic flat{Vector(numbers, 0), Vector(numbers, 0)};
  return simulate::make_quadratic(std::vector(static_cast<std::size_t>(workers), flat), noise, seed);
}

Classification::Classification(const Lab& lab, std::int32_t workers, std::uint64_t seed) : lab_(lab), seed_(seed) {
  simulate::Softmax set{.workers = workers,
                        .classes = 10,
                        .features = 16,
                        .samples = lab.quick() ? 16 : 128,
                        .batch = 8,
                        .spread = 3,
                        .skew = 0.5};
  problem_ = simulate::make_softmax(set, seed);
  set.batch = 0;
  whole_ = simulate::make_softmax(set, seed);
}

double Classification::lowest() const {
  if (lowest_ < 0) {
    Job job = job_of(whole_, "allreduce", lab_.steps(600), seed_, [](simulate::Random&) { return 1.0; });
    job.lr = 0.2;
    job.momentum = 0.9;
    lowest_ = problem_->objective(lab_.run(job).summary.model);
  }
  return lowest_;
}

double Classification::loss(const Vector& model) const { return problem_->objective(model) - lowest(); }

double Classification::own_loss(const Job& job, const Outcome& outcome) const {
  const auto models = last_models(job, outcome);
  double sum = 0;
  for (const Vector& model : models) sum += loss(model);
  return sum / static_cast<double>(models.size());
}

PlotLine Classification::curve(const std::string& name, const Job& job, const Outcome& outcome) const {
  return {name, simulate::figures_of(job, outcome, lowest(), {}).curve};
}

double level(const PlotLine& curve) {
  double sum = 0;
  const std::size_t from = curve.points.size() * 3 / 4;
  for (std::size_t k = from; k < curve.points.size(); ++k) sum += curve.points[k].second;
  return sum / static_cast<double>(curve.points.size() - from);
}

double time_to(const PlotLine& curve, double target) {
  for (const auto& [time, loss] : curve.points) {
    if (loss <= target) return time;
  }
  return std::numeric_limits<double>::infinity();
}

double sooner(const PlotLine& other, const PlotLine& ours, double target) {
  return std::min(time_to(other, target), other.points.back().first) / time_to(ours, target);
}

Seen::Seen(std::shared_ptr<const Problem> inner, Source source, Scale scale)
    : inner_(std::move(inner)), source_(std::move(source)), scale_(std::move(scale)) {}

std::pair<Vector, double> Seen::gradient(Rank worker, Version step, const Vector& x) const {
  auto result = inner_->gradient(source_ ? source_(worker, step) : worker, step, x);
  if (!scale_) return result;
  for (double& g : result.first) g *= scale_(step);
  return result;
}

std::vector<Vector> last_models(const Job& job, const Outcome& outcome) {
  std::vector<Vector> models(static_cast<std::size_t>(job.problem->workers()), job.start[0]);
  for (const Row& row : outcome.rows) models[static_cast<std::size_t>(row.worker.value)] = row.model;
  return models;
}

double consensus(const std::vector<Vector>& models) {
  double sum = 0;
  const auto count = static_cast<double>(models.size());
  for (std::size_t k = 0; k < models[0].size(); ++k) {
    double mean = 0;
    for (const Vector& model : models) mean += model[k] / count;
    for (const Vector& model : models) sum += (model[k] - mean) * (model[k] - mean);
  }
  return sum / count / static_cast<double>(models[0].size());
}

double mean_consensus(const Job& job, const Outcome& outcome, std::int64_t from) {
  std::map<std::int64_t, std::vector<Vector>> steps;
  for (const Row& row : outcome.rows) {
    if (row.step.value >= from) steps[row.step.value].push_back(row.model);
  }
  double sum = 0;
  for (const auto& [step, models] : steps) sum += consensus(models);
  PACELINE_CHECK(from < job.steps, "some steps are looked at");
  return sum / static_cast<double>(steps.size());
}

}  // namespace paceline::cli::reproduce
