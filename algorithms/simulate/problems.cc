#include "algorithms/simulate/problems.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "algorithms/simulate/random.h"
#include "runtime/base/check.h"

namespace paceline::simulate {
namespace {

// Measured, as in cost.cc.
constexpr double kNsNormal = 20, kNsWeight = 1.5, kNsScore = 20;

class QuadraticProblem final : public Problem {
 public:
  QuadraticProblem(std::vector<Quadratic> quadratics, double noise, std::uint64_t seed)
      : workers_(std::move(quadratics)), noise_(noise), seed_(seed) {
    PACELINE_CHECK(!workers_.empty(), "a problem has a worker");
  }

  std::int32_t workers() const override { return static_cast<std::int32_t>(workers_.size()); }
  std::size_t dimensions() const override { return workers_[0].a.size(); }

  std::pair<Vector, double> gradient(Rank worker, Version step, const Vector& x) const override {
    const Quadratic& f = of(worker);
    Vector gradient(x.size());
    for (std::size_t k = 0; k < x.size(); ++k) gradient[k] = f.a[k] * (x[k] - f.c[k]);
    if (noise_ > 0) {
      Random random(seed_, Use::gradient_noise, {worker.value, step.value});
      for (double& g : gradient) g += noise_ * random.normal();
    }
    return {std::move(gradient), loss(f, x)};
  }

  double gradient_ns() const override { return noise_ > 0 ? kNsNormal * static_cast<double>(dimensions()) : 0; }

  double objective(const Vector& x) const override {
    double sum = 0;
    for (const Quadratic& f : workers_) sum += loss(f, x);
    return sum / static_cast<double>(workers_.size());
  }

 private:
  const Quadratic& of(Rank worker) const { return workers_[static_cast<std::size_t>(worker.value)]; }

  static double loss(const Quadratic& f, const Vector& x) {
    double loss = 0;
    for (std::size_t k = 0; k < x.size(); ++k) loss += 0.5 * f.a[k] * (x[k] - f.c[k]) * (x[k] - f.c[k]);
    return loss;
  }

  std::vector<Quadratic> workers_;
  double noise_;
  std::uint64_t seed_;
};

class SoftmaxProblem final : public Problem {
 public:
  SoftmaxProblem(const Softmax& set, std::uint64_t seed) : set_(set), seed_(seed) {
    std::vector<Vector> centres;
    for (std::int32_t c = 0; c < set.classes; ++c) {
      Random random(seed, Use::centres, {c});
      centres.emplace_back(static_cast<std::size_t>(set.features));
      for (double& number : centres.back()) number = random.normal();
    }
    for (std::int32_t worker = 0; worker < set.workers; ++worker) {
      samples_.emplace_back();
      for (std::int32_t j = 0; j < set.samples; ++j) samples_.back().push_back(sample(centres, worker, j));
    }
  }

  std::int32_t workers() const override { return set_.workers; }
  std::size_t dimensions() const override {
    return static_cast<std::size_t>(set_.classes) * (static_cast<std::size_t>(set_.features) + 1);
  }

  std::pair<Vector, double> gradient(Rank worker, Version step, const Vector& x) const override {
    const auto& samples = samples_[static_cast<std::size_t>(worker.value)];
    Vector gradient(x.size(), 0);
    double loss = 0;
    if (set_.batch == 0) {
      for (const Sample& s : samples) loss += add(s, x, &gradient);
    } else {
      Random random(seed_, Use::batches, {worker.value, step.value});
      for (std::int32_t k = 0; k < set_.batch; ++k)
        loss += add(samples[static_cast<std::size_t>(random.below(set_.samples))], x, &gradient);
    }
    const double count = set_.batch == 0 ? set_.samples : set_.batch;
    for (double& g : gradient) g /= count;
    return {std::move(gradient), loss / count};
  }

  double gradient_ns() const override {
    const double count = set_.batch == 0 ? set_.samples : set_.batch;
    return count * (kNsWeight * static_cast<double>(dimensions()) + kNsScore * set_.classes);
  }

  double objective(const Vector& x) const override {
    double sum = 0;
    for (const auto& samples : samples_) {
      for (const Sample& s : samples) sum += add(s, x, nullptr);
    }
    return sum / set_.workers / set_.samples;
  }

 private:
  struct Sample {
    std::int32_t label;
    Vector point;
  };

  Sample sample(const std::vector<Vector>& centres, std::int32_t worker, std::int32_t j) const {
    Random random(seed_, Use::samples, {worker, j});
    const bool own = random.uniform() <= set_.skew;
    const auto any = static_cast<std::int32_t>(random.below(set_.classes));
    Sample result{own ? worker % set_.classes : any, {}};
    for (double number : centres[static_cast<std::size_t>(result.label)])
      result.point.push_back(number + set_.spread * random.normal());
    return result;
  }

  /// The sample's cross entropy at `x`; its gradient is added to `sum`, if there is one.
  double add(const Sample& s, const Vector& x, Vector* sum) const {
    const std::size_t row = s.point.size() + 1;
    Vector scores(static_cast<std::size_t>(set_.classes));
    for (std::size_t c = 0; c < scores.size(); ++c) {
      const double* weights = x.data() + c * row;
      scores[c] = std::inner_product(s.point.begin(), s.point.end(), weights, 0.0) + weights[row - 1];
    }
    const double highest = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    for (double score : scores) total += std::exp(score - highest);
    const auto label = static_cast<std::size_t>(s.label);
    const double loss = highest + std::log(total) - scores[label];
    if (!sum) return loss;
    for (std::size_t c = 0; c < scores.size(); ++c) {
      const double slope = std::exp(scores[c] - highest) / total - (c == label ? 1 : 0);
      double* gradient = sum->data() + c * row;
      for (std::size_t k = 0; k + 1 < row; ++k) gradient[k] += slope * s.point[k];
      gradient[row - 1] += slope;
    }
    return loss;
  }

  Softmax set_;
  std::uint64_t seed_;
  std::vector<std::vector<Sample>> samples_;  // By worker.
};

}  // namespace

std::shared_ptr<const Problem> make_quadratic(std::vector<Quadratic> workers, double noise, std::uint64_t seed) {
  return std::make_shared<QuadraticProblem>(std::move(workers), noise, seed);
}

std::shared_ptr<const Problem> make_softmax(const Softmax& set, std::uint64_t seed) {
  return std::make_shared<SoftmaxProblem>(set, seed);
}

}  // namespace paceline::simulate
