#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "algorithms/cluster/training/evaluations.h"
#include "algorithms/cluster/training/kept_checkpoints.h"
#include "algorithms/job/options.h"
#include "runtime/base/ids.h"
#include "runtime/base/instant.h"
#include "runtime/base/result.h"

namespace paceline::cluster {

/// Evaluations of the averaged model, and checkpoints between them, on the node that leads: who makes one, since when,
/// and what becomes of it. The others are told, since one of them may lead next. It renames files of the run directory,
/// and has no other I/O.
class JobEvaluation {
 public:
  /// An evaluator that does not evaluate is waited for so long.
  static constexpr Duration kPatience = std::chrono::seconds(5);

  /// How far the job is.
  struct Figures {
    double clock_s = 0;
    std::int64_t samples = 0;
    double loss = 0;
  };
  struct Evaluated {
    Rank worker{};
    std::int64_t update = 0;  ///< Updates done.
    double value = 0;
    Figures figures;
    bool best = false;     ///< Of those so far.
    bool reached = false;  ///< The target.
  };
  struct Outcome {
    Evaluated evaluated;
    std::optional<Error> trouble;  ///< Its checkpoint could not be kept.
    std::string stop;              ///< Why the job is to end; empty: it goes on.
  };

  explicit JobEvaluation(const job::Options& options);

  /// `evaluator`: a worker of this node; nullopt: nobody can, and the evaluation is over.
  void begin(Version v, std::optional<Rank> evaluator, Instant now);
  std::optional<Version> version() const { return version_; }  ///< Of the one that is under way.
  std::optional<Rank> evaluator() const { return version_ ? evaluator_ : std::nullopt; }
  bool is_by(Rank rank) const { return evaluator() == rank; }
  bool is_late(Instant now) const { return evaluator() && now - since_ >= kPatience; }
  Outcome on_value(double value, const Figures& figures);
  /// What the newest has led to, here or elsewhere; null: there was none.
  const Outcome* newest_outcome() const { return outcome_ ? &*outcome_ : nullptr; }
  /// An evaluation on another node has given it.
  void on_value_elsewhere(const Evaluated& evaluated);
  void end() { version_.reset(); }
  /// The newest, for people; null: there was none, or no metric.
  const nlohmann::json& newest() const { return newest_; }

  /// One worker writes a checkpoint between two of its updates, and the others do not wait for it.
  bool wants_checkpoint(Instant now);
  bool may_save(Rank rank) const { return !saving_.contains(rank); }
  void ask_to_save(Rank rank, Instant now);
  /// Whether a checkpoint was kept.
  Result<bool> on_saved(Rank rank, std::int64_t update);

  void on_left(Rank rank);

 private:
  Metric metric_;
  Duration save_every_;  ///< 0: with evaluations only.
  Evaluations evaluations_;
  KeptCheckpoints kept_;
  std::optional<Version> version_;
  std::optional<Rank> evaluator_;
  Instant since_{};
  std::optional<Outcome> outcome_;
  nlohmann::json newest_;
  std::optional<Instant> saved_;  ///< When a checkpoint was asked for last, or the job began.
  std::set<Rank> saving_;         ///< Asked, and have not answered; the next one is asked of another.
};

}  // namespace paceline::cluster
