#include "algorithms/cluster/training/evaluations.h"

#include <cmath>

namespace paceline::cluster {

Evaluations::Outcome Evaluations::on_value(std::int64_t update, double value) {
  const Metric& metric = options_.metric;
  Outcome outcome;
  outcome.is_best = !std::isnan(value) && (!best_ || job::is_better(metric, value, best_->value));
  if (outcome.is_best) best_ = {update, value};
  no_better_ = outcome.is_best ? 0 : no_better_ + 1;
  outcome.reached = options_.target && job::reaches(metric, value, *options_.target);
  if (outcome.reached) {
    outcome.stop = "the target was reached";
  } else if (best_ && options_.early_stopping > 0 && no_better_ >= options_.early_stopping) {
    outcome.stop = "no better " + metric.name + " than " + job::text(metric, best_->value) + " (update " +
                   std::to_string(best_->update) + ") in " + std::to_string(no_better_) +
                   (no_better_ == 1 ? " evaluation" : " evaluations");
  }
  return outcome;
}

}  // namespace paceline::cluster
