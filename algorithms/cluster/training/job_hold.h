#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/cluster/training/job_end.h"
#include "algorithms/cluster/training/job_evaluation.h"
#include "algorithms/cluster/training/job_members.h"
#include "algorithms/cluster/training/job_news.h"
#include "algorithms/cluster/training/job_settings.h"
#include "algorithms/cluster/training/job_view.h"
#include "algorithms/cluster/training/signs_of_life.h"
#include "scheduler/shell/averaging_service.h"

namespace paceline::cluster {

/// Versions at which workers are held on one node: an evaluation is made there, or the job ends. The node that leads
/// sees to both and tells the others when it is over; they tell it when all of theirs are there.
///
///   executed -> (evaluation) -> released, or the job's last: all are there or left behind -> released: workers end
class JobHold {
 public:
  /// All that is referred to outlives this.
  struct Around {
    const JobSettings& settings;
    const JobMembers& members;
    const SignsOfLife& life;
    const JobView& view;
    const JobNews& news;
    const JobOutbox& outbox;
    std::function<bool(Rank)> lose;  ///< Whether it was there until now.
    std::function<void(wire::Message&)> to_all_nodes;
    /// Where this node leads: the leg that somebody has asked for, if the job may end at v for that only.
    std::function<std::optional<JobEntry>(Version)> next_leg;
    std::function<void(const JobEntry&, Version)> begin_leg;  ///< It has ended there for this one.
  };

  explicit JobHold(Around around);
  /// The plan is known, and the first model can come. Before, nothing has been executed: what else is called then finds
  /// nothing to do.
  /// `evaluate_every`: updates, 0: at the end only; below: never.
  void open(std::shared_ptr<scheduler::AveragingService> averagings, std::int64_t evaluate_every) {
    averagings_ = std::move(averagings);
    evaluate_every_ = evaluate_every;
  }
  /// Of the leg before; it needs them no more.
  JobEvaluation take_evaluation() { return std::move(evaluation_); }
  void go_on_from(JobEvaluation evaluation) { evaluation_ = std::move(evaluation); }

  void on_executed(const scheduler::AveragingService::Executed& executed, Instant now);
  void on_evaluated(Rank rank, std::int64_t update, double value, Instant now);
  void on_saved(Rank rank, std::int64_t update);
  void on_released(const wire::Released::Reader& released, Instant now);
  void on_settled(const wire::Settled::Reader& settled, Instant now);
  /// A worker leaves.
  void on_left(Rank rank) { evaluation_.on_left(rank); }
  /// It has: nobody waits for its evaluation.
  void go_on_without(Rank rank, Instant now);
  void on_node_gone(NodeId node);
  /// Nobody else does any more.
  void take_lead(Instant now);
  /// Workers are to end by themselves from here on.
  void finish(Instant now) { finished_at_ = now; }
  /// The job's end goes on as far as it can now.
  void settle(Instant now);
  void tick(Instant now);
  /// Of the worker that is furthest, where one is due: it stands still least likely.
  void ask_for_checkpoint(Instant now);
  void leave_behind(Rank rank);

  /// Where the job ends; before that is known: nothing.
  std::optional<Version> end() const { return end_.version(); }
  /// When it came to that.
  Instant ended_at() const { return ended_at_; }
  bool is_settling() const { return end_.is_settling(); }
  bool is_evaluating() const { return evaluation_.version().has_value(); }
  std::optional<Instant> finished_at() const { return finished_at_; }
  /// The newest evaluation, for people; null: there was none.
  const nlohmann::json& newest() const { return evaluation_.newest(); }

 private:
  void begin_evaluation(Instant now);
  void end_evaluation(Instant now);
  void look_at_evaluator(Instant now);
  void release(Version v, Instant now);
  void end_here(Version v, Instant now);
  void send_released(Version v, bool ends);
  void look_for_next_leg();
  bool is_due(Version v) const;
  bool is_settled(Rank rank) const;
  void tell_settled();
  void leave_those_behind(Instant now);
  Duration end_patience(bool is_alive) const;

  const Around around_;
  std::shared_ptr<scheduler::AveragingService> averagings_;
  JobEvaluation evaluation_;
  /// Executed, and neither released nor, where this node leads, begun.
  std::optional<std::pair<Version, std::vector<Rank>>> to_evaluate_;
  std::optional<Rank> second_;  ///< Evaluates if who does ends.
  JobEnd end_;
  Instant ended_at_{};
  std::int64_t evaluate_every_ = 0;
  std::optional<JobEntry> next_;   ///< For which the job ends;
  bool next_is_released_ = false;  ///< the leader has said that it begins.
  std::optional<Instant> finished_at_;
};

}  // namespace paceline::cluster
