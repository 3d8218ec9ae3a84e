#include "algorithms/cluster/training/job_evaluation.h"

#include <cmath>
#include <utility>

#include "algorithms/job/metric.h"

namespace paceline::cluster {

JobEvaluation::JobEvaluation(const job::Options& options)
    : metric_(options.metric),
      save_every_(from_seconds(options.checkpoint_every_s)),
      evaluations_({options.metric, options.target, options.early_stopping}),
      kept_(options.run_directory, options.keep_checkpoints) {}

void JobEvaluation::begin(Version v, std::optional<Rank> evaluator, Instant now) {
  version_ = v;
  evaluator_ = evaluator;
  since_ = now;
  saved_ = now;
}

JobEvaluation::Outcome JobEvaluation::on_value(double value, const Figures& figures) {
  const std::int64_t updates = version_->value + 1;
  const auto found = evaluations_.on_value(updates, value);
  outcome_ = {
      {evaluator_.value_or(Rank{}), updates, value, figures, found.is_best, found.reached}, std::nullopt, found.stop};
  Outcome outcome = *outcome_;
  if (!std::isnan(value)) {
    newest_ = job::to_json(metric_);
    newest_.update({{"update", updates}, {"clock_s", figures.clock_s}, {"value", value}, {"best", found.is_best}});
  }
  if (const auto kept = kept_.keep(updates, found.is_best); !kept) outcome.trouble = kept.error();
  return outcome;
}

void JobEvaluation::on_value_elsewhere(const Evaluated& evaluated) {
  if (outcome_ && outcome_->evaluated.update >= evaluated.update) return;
  const auto found = evaluations_.on_value(evaluated.update, evaluated.value);
  outcome_ = {evaluated, std::nullopt, found.stop};  // What follows from it that node has seen to.
  kept_.note_kept(evaluated.update);
}

bool JobEvaluation::wants_checkpoint(Instant now) {
  if (save_every_ <= Duration::zero()) return false;
  if (!saved_) saved_ = now;
  return now - *saved_ >= save_every_;
}

void JobEvaluation::ask_to_save(Rank rank, Instant now) {
  saved_ = now;
  saving_.insert(rank);
}

Result<bool> JobEvaluation::on_saved(Rank rank, std::int64_t update) {
  saving_.erase(rank);
  if (version_) {  // It saves, too.
    kept_.drop_fresh(rank);
    return false;
  }
  return kept_.take_fresh(rank, update + 1);
}

void JobEvaluation::on_left(Rank rank) {
  if (saving_.erase(rank) > 0) kept_.drop_fresh(rank);
}

}  // namespace paceline::cluster
