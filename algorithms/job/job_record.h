#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "algorithms/job/metric.h"
#include "algorithms/job/options.h"
#include "algorithms/job/sample_ledger.h"
#include "paceline/run_result.h"
#include "runtime/base/json.h"

namespace paceline::job {

/// What a driver knows of its job, made from the events of the job's nodes. Pure: events in, figures out.
class JobRecord {
 public:
  struct Worker {
    std::int32_t rank = 0;
    std::int32_t node = 0;
    std::int64_t step = 0;
    std::int64_t samples = 0;
    double samples_per_s = 0;  ///< Over the last few seconds of training.
    double wait_s = 0;
    std::string state;
    bool left = false;
  };
  static constexpr std::int32_t kNotKnown = -1;  ///< On which node: that which first tells of it.
  /// `node_of`: of each place, as the job was placed; `vacant`: those that nobody has at the start.
  JobRecord(const Options& options, const std::vector<std::int32_t>& node_of,
            const std::vector<std::int32_t>& vacant = {});

  void on_event(const nlohmann::json& event);

  const std::map<std::int32_t, Worker>& workers() const { return workers_; }
  const Metric& metric() const { return metric_; }
  const std::vector<Evaluation>& evaluations() const { return evaluations_; }
  /// The first of those that no other betters; nullopt: there was no evaluation.
  std::optional<Evaluation> best() const;
  const std::vector<TrainingLoss>& losses() const { return losses_; }
  /// By name, what workers have logged last (`Worker::log`), on average; names in the order in which they first came,
  /// 1000 at most.
  std::vector<std::pair<std::string, double>> logged() const;
  std::int64_t update() const { return update_; }
  std::int64_t updates() const { return updates_; }
  double clock_s() const { return clock_s_; }
  double loss() const { return loss_; }
  std::int64_t period() const { return period_; }
  /// Training samples that all workers have processed.
  std::int64_t samples() const;
  double samples_per_s() const;
  std::optional<double> time_to_target_s() const;
  const std::optional<std::string>& failure() const { return failure_; }
  const std::string& stop_reason() const { return stop_reason_; }
  /// The strategy that it goes on with; empty: it was not changed.
  std::string changed_to() const;
  bool left(std::int32_t rank) const { return left_.contains(rank); }
  /// Those that left before the job's end, and do not come back.
  const std::set<std::int32_t>& lost() const { return lost_; }
  /// One of these went with its node, whose agent may come back.
  bool has_lost_node() const;
  /// It has left, and another process comes in its place.
  bool is_away(std::int32_t rank) const { return away_.contains(rank); }
  /// Nobody has its place, or somebody is on the way there.
  bool is_vacant(std::int32_t rank) const { return vacant_.contains(rank); }
  /// A worker has been started for this place.
  void on_started(std::int32_t rank) { away_.insert(rank); }
  /// It has ended before it was there.
  void on_not_joined(std::int32_t rank) { away_.erase(rank); }
  /// Of all places those whose workers are there, or come back.
  std::int64_t living() const;
  /// What became of its samples.
  nlohmann::json ledger() const { return ledger_.rows(); }
  /// Nobody comes back any more.
  void conclude();
  /// All nodes that have places have said so, or are lost.
  bool closed() const;

  /// The `result` event (paceline run --json).
  nlohmann::json result() const;

 private:
  bool leads(std::int32_t node) const;
  void on_node_joined(const nlohmann::json& event);
  void on_left(const nlohmann::json& event);
  void on_returned(std::int32_t rank);
  void on_progress(const nlohmann::json& event);

  std::string strategy_;
  nlohmann::json changes_ = nlohmann::json::array();  ///< Of it, while the job ran.
  Metric metric_;
  std::optional<double> target_;
  std::map<std::int32_t, Worker> workers_;
  struct Mark {
    double clock_s = 0;
    std::int64_t samples = 0;
  };
  std::map<std::int32_t, Mark> marks_;  // Per worker: start of the window that samples_per_s is taken over.
  struct Done {
    std::int32_t node = 0;
    std::int64_t samples = 0;
    double wait_s = 0;
  };
  static void count(std::vector<Done>& done, std::int32_t node, const nlohmann::json& row);
  std::map<std::int32_t, std::vector<Done>> done_;   // Per worker: what was in its place, on one node after another.
  std::map<std::int32_t, nlohmann::json> counters_;  // Node -> its counters.
  std::vector<Evaluation> evaluations_;
  std::vector<TrainingLoss> losses_;
  std::map<std::string, std::map<std::int32_t, double>> logged_;  // Name -> rank -> value.
  std::vector<std::string> logged_names_;                         // In the order in which they came.
  std::int64_t update_ = 0;
  std::int64_t updates_ = 0;
  std::int64_t period_ = 1;
  double clock_s_ = 0;
  double loss_ = 0;
  double step_s_ = 0;
  std::map<std::int32_t, std::string> models_;  // Rank -> hash of the model that it ended with.
  std::map<std::string, std::string> files_;    // That the training depends on -> hash.
  std::set<std::int32_t> left_;
  std::set<std::int32_t> lost_;
  std::set<std::int32_t> with_node_;  ///< Those that were lost with their nodes.
  std::set<std::int32_t> away_;
  std::set<std::int32_t> vacant_;
  // Rank -> how often it came back, took the place, left it as was asked.
  std::map<std::int32_t, std::int64_t> returns_, joins_, drains_;
  std::set<std::int32_t> closed_;
  std::set<std::int32_t> lost_nodes_;
  SampleLedger ledger_;
  std::optional<std::string> failure_;
  std::string stop_reason_;
};

}  // namespace paceline::job
