#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "algorithms/cluster/training/job_entry.h"
#include "runtime/base/ids.h"
#include "runtime/base/instant.h"
#include "runtime/store/state_store.h"

namespace paceline::cluster {

/// What of a cluster outlives its head: which nodes have registered, and what became of jobs. What runs, agents know;
/// what is over stands here only. I/O by its store only, off the path of steps and calls. A store that cannot be
/// written to keeps nobody from anything: it is tried again, and who asks hears of it.
class ClusterState {
 public:
  using Wall = std::chrono::system_clock::time_point;
  static constexpr std::size_t kJobsKept = 200;  ///< Of those that are over, the newest.
  static constexpr Duration kTryAgain = std::chrono::seconds(1);

  /// Reads what there is.
  explicit ClusterState(std::shared_ptr<store::StateStore> store);

  void on_registered(NodeId node, std::uint64_t incarnation, const std::string& address, Wall at);
  /// No job is to get workers there, until another agent is started.
  void on_drained(NodeId node);
  bool is_drained(NodeId node) const;
  /// How often an agent was started there.
  std::int64_t starts(NodeId node) const;

  /// A job runs. One that is known stays as it is.
  void on_running(JobId job, const JobEntry& entry, Wall at);
  void on_node_lost(JobId job, NodeId node, const std::string& cause, Wall at);
  void on_node_back(JobId job, NodeId node);
  /// Written before this returns, if it can be. `outcome`: what its driver says of it, with its `state`; null: its
  /// driver ended without a word. Of a job that is over only the figures are taken.
  void on_closed(JobId job, const nlohmann::json& outcome, Wall at);
  /// All have said what runs: what does not, and is not over, was lost with the head.
  void lose_all_but(const std::set<JobId>& running, Wall at);

  bool is_over(JobId job) const;
  /// The highest number that a job had.
  JobId newest() const;
  /// Rows of those that are over, oldest first.
  nlohmann::json jobs_over() const;

  /// What has changed, and what could not be written.
  void write(Instant now);
  std::optional<Instant> next_deadline() const { return try_again_; }
  /// Why it cannot be written, or was not read; empty: all is well.
  const std::string& problem() const { return problem_; }

 private:
  void change(const std::string& key, const nlohmann::json& record);
  static void take_end(nlohmann::json& record, const nlohmann::json& outcome);
  static void take_figures(nlohmann::json& record, const nlohmann::json& outcome);
  void end(JobId job, nlohmann::json& record, const nlohmann::json& outcome, Wall at);
  void forget_oldest();
  bool flush();

  std::shared_ptr<store::StateStore> store_;
  std::map<NodeId, nlohmann::json> nodes_;
  std::map<JobId, nlohmann::json> jobs_;
  store::StateStore::Texts changed_;  ///< Not written yet.
  std::optional<Instant> try_again_;
  std::string problem_;
};

}  // namespace paceline::cluster
