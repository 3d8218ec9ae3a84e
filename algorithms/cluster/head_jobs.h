#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "algorithms/cluster/cluster_state.h"
#include "algorithms/cluster/head_links.h"
#include "algorithms/cluster/job_directory.h"

namespace paceline::cluster {

/// The shell of the head's JobDirectory: places jobs, tells agents what becomes of them, and writes down what outlives
/// this head. Owned by the head's control loop.
class HeadJobs {
 public:
  struct Around {
    HeadLinks& links;
    std::function<ClusterState::Wall()> wall;
    std::function<void()> nodes_changed;  ///< What nodes() says, perhaps.
  };

  /// `start`: of this process. `store`: what the heads before it have written; nullptr: nothing.
  HeadJobs(Instant start, std::shared_ptr<store::StateStore> store, Around around);

  const JobDirectory& directory() const { return directory_; }
  const ClusterState& state() const { return state_; }
  /// That jobs have workers on.
  std::set<NodeId> nodes() const;

  /// The same request of the same asker is the same job.
  Result<nlohmann::json> submit(const HeadLinks::Asker& asker, const nlohmann::json& body, Instant now);
  Result<nlohmann::json> move_driver(const HeadLinks::Asker& asker, const nlohmann::json& body, Instant now);
  Result<nlohmann::json> stop(const nlohmann::json& body);
  /// Its driver hears that somebody wants so many workers.
  Result<nlohmann::json> scale(const nlohmann::json& body);
  /// The agent of a worker hears that this is to leave.
  Result<nlohmann::json> drain(const nlohmann::json& body);
  void close(const nlohmann::json& body, Instant now);

  /// Before its hello: a job that it runs.
  void on_runs(NodeId node, const wire::OpenJob::Reader& open, Instant now);
  void on_registered(NodeId node, const wire::Hello::Reader& hello, Instant now);
  void on_node_gone(NodeId node, const transport::Event& gone, Instant now);
  void on_driver_gone(NodeId node, const std::string& driver, Instant now);
  void on_cut_off(NodeId from, const nlohmann::json& body, Instant now);
  void tick(Instant now);
  std::optional<Instant> next_deadline() const;

 private:
  void close_those_over(Instant now);
  void compare_with_state();
  void write_state(Instant now);
  Result<nlohmann::json> answer_of(JobId job) const;
  Result<std::vector<std::int32_t>> vacant(const job::Options& options, const algorithms::Strategy& strategy,
                                           const std::vector<NodeId>& node_of) const;
  void act(const JobDirectory::Actions& actions, Instant now);
  void carry_out(const JobDirectory::Open& open, Instant now);
  void carry_out(const JobDirectory::Close& close, Instant now);
  void carry_out(const JobDirectory::Lost& lost, Instant now);
  void carry_out(const JobDirectory::GoOn& go_on, Instant now);
  void carry_out(const JobDirectory::CloseOn& close, Instant now);
  void carry_out(const JobDirectory::Driven& driven, Instant now);

  const Around around_;
  ClusterState state_;
  JobDirectory directory_;
  bool compared_ = false;                 ///< What the heads before it have written, with what runs.
  std::optional<Instant> writes_from_{};  ///< Earlier where all nodes are there; nullopt: it does.
};

}  // namespace paceline::cluster
