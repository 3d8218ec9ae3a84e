#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/simulate/job.h"
#include "algorithms/simulate/random.h"
#include "cli/reproduce/study.h"
#include "runtime/observe/format.h"

namespace paceline::cli::reproduce {

using observe::format;

/// Where a study measures: runs simulated jobs, always with the same seeds, and tells of its progress.
class Lab {
 public:
  /// `quick`: for tests, with a tenth of the steps. `on_run` is told of every simulation that ends.
  explicit Lab(bool quick, std::function<void()> on_run = {});

  bool quick() const { return quick_; }
  /// `steps`, or a tenth of it, but at least 20.
  std::int64_t steps(std::int64_t steps) const;
  /// What `measure` gives under the seeds 1, 2 and 3.
  Spread over_seeds(const std::function<double(std::uint64_t seed)>& measure) const;
  /// The job must be right: one that is refused is a programmer's error.
  simulate::Outcome run(const simulate::Job& job) const;

 private:
  bool quick_;
  std::function<void()> on_run_;
};

/// A time in seconds, or one after the other.
using Draw = std::function<double(simulate::Random&)>;
Draw uniform(double least, double most);
Draw exponential();
inline double one(simulate::Random&) { return 1; }

/// A job whose times are drawn anew for every worker and step, the same for all strategies.
simulate::Job job_of(std::shared_ptr<const simulate::Problem> problem, const std::string& strategy, std::int64_t steps,
                     std::uint64_t seed, const Draw& time);
/// Seconds a step.
double step_s(const simulate::Job& job, const simulate::Outcome& outcome);

/// Nothing to learn: numbers that only averaging changes. `noise`: they take a random walk of this step (at lr 1).
std::shared_ptr<const simulate::Problem> nothing(std::int32_t workers, std::size_t numbers = 1, double noise = 0,
                                                 std::uint64_t seed = 0);

inline constexpr double kLearningRate = .1;

/// Linear classification, 10 classes of 16 features, 128 samples a worker (quick: 16) of which half are of its own
/// class, batch 8.
class Classification {
 public:
  Classification(const Lab& lab, std::int32_t workers, std::uint64_t seed);

  const std::shared_ptr<const simulate::Problem>& problem() const { return problem_; }
  /// Loss over all samples, above the lowest (which 600 steps of gradient descent find).
  double loss(const simulate::Vector& model) const;
  /// Mean of the same over the workers' own last models.
  double own_loss(const simulate::Job& job, const simulate::Outcome& outcome) const;
  /// The loss of the workers' mean model over time.
  PlotLine curve(const std::string& name, const simulate::Job& job, const simulate::Outcome& outcome) const;

 private:
  double lowest() const;

  const Lab& lab_;
  std::shared_ptr<const simulate::Problem> problem_, whole_;
  std::uint64_t seed_;
  mutable double lowest_ = -1;
};

/// Another problem, seen differently: by whose data a worker learns at a step, and times what its gradient is taken.
class Seen final : public simulate::Problem {
 public:
  using Source = std::function<Rank(Rank worker, Version step)>;
  using Scale = std::function<double(Version step)>;
  Seen(std::shared_ptr<const simulate::Problem> inner, Source source, Scale scale);

  std::int32_t workers() const override { return inner_->workers(); }
  std::size_t dimensions() const override { return inner_->dimensions(); }
  std::pair<simulate::Vector, double> gradient(Rank worker, Version step, const simulate::Vector& x) const override;
  double objective(const simulate::Vector& x) const override { return inner_->objective(x); }
  double gradient_ns() const override { return inner_->gradient_ns(); }

 private:
  std::shared_ptr<const simulate::Problem> inner_;
  Source source_;
  Scale scale_;
};

/// Mean of a curve's last quarter: where it has come to.
double level(const PlotLine& curve);
/// When it first is at `target` or below; infinite if never.
double time_to(const PlotLine& curve, double target);
/// How many times sooner than `other` `ours` is at `target`: 0 if it never is; an `other` that never is counts as if it
/// were at its end, which is too little.
double sooner(const PlotLine& other, const PlotLine& ours, double target);

/// The workers' models after their last rows.
std::vector<simulate::Vector> last_models(const simulate::Job& job, const simulate::Outcome& outcome);
/// Mean square distance of models to their mean, a number.
double consensus(const std::vector<simulate::Vector>& models);
/// The same, mean over the steps from `from` on.
double mean_consensus(const simulate::Job& job, const simulate::Outcome& outcome, std::int64_t from);

// The studies, one file each.
Study study_wagma(const Lab& lab);
Study study_adacomm(const Lab& lab);
Study study_nonblocking(const Lab& lab);
Study study_hier_avg(const Lab& lab);
Study study_sgp(const Lab& lab);

}  // namespace paceline::cli::reproduce
