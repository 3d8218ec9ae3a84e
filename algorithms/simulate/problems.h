#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "algorithms/simulate/world.h"

namespace paceline::simulate {

/// What the workers of a simulated job learn. Pure: the same arguments give the same numbers, whatever was asked
/// before, so that a strategy changes the order of things and not the data. docs/jobs.md has the formulas.
class Problem {
 public:
  virtual ~Problem() = default;
  virtual std::int32_t workers() const = 0;
  virtual std::size_t dimensions() const = 0;
  /// The worker's stochastic gradient at `x` in its iteration `step`, and its loss there.
  virtual std::pair<Vector, double> gradient(Rank worker, Version step, const Vector& x) const = 0;
  /// The objective: mean over the workers of their whole losses, without noise.
  virtual double objective(const Vector& x) const = 0;
  /// What a gradient costs beside reading and writing its numbers, roughly (cost.cc says where it was measured).
  virtual double gradient_ns() const = 0;
};

/// A worker's loss 1/2 sum a (x - c)^2.
struct Quadratic {
  Vector a, c;
};

/// `least_squares` (noise 0) and `quadratic_noise`: to each number of a gradient comes a normal one of this deviation.
/// All workers have as many numbers, at least one.
std::shared_ptr<const Problem> make_quadratic(std::vector<Quadratic> workers, double noise = 0, std::uint64_t seed = 0);

/// `softmax`: linear classification of points around random centres, one a class.
struct Softmax {
  std::int32_t workers = 1;
  std::int32_t classes = 2;
  std::int32_t features = 1;
  std::int32_t samples = 1;  ///< Of each worker.
  std::int32_t batch = 0;    ///< Of a gradient, drawn with replacement; 0: all samples.
  double spread = 1;         ///< Standard deviation of a point around its centre.
  double skew = 0;  ///< Probability that a sample of worker i is of class i mod classes, whatever else it may be.
};

/// The model is row after row, a class each: `features` weights, then the bias.
std::shared_ptr<const Problem> make_softmax(const Softmax& set, std::uint64_t seed);

}  // namespace paceline::simulate
