#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

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
  /// A worker, or all of a node, are to leave their jobs, whose drivers hear of it; no job gets workers on such a node.
  Result<nlohmann::json> drain(const nlohmann::json& body);
  /// The agent of a worker hears that this is to leave.
  Result<nlohmann::json> let_go(const nlohmann::json& body);
  /// The job goes on with another strategy, from the next version on at which all have the same model.
  Result<nlohmann::json> set(const nlohmann::json& body, Instant now);
  void close(const nlohmann::json& body, Instant now);

  /// Before its hello: a job that it runs.
  void on_runs(NodeId node, const wire::OpenJob::Reader& open, Instant now);
  void on_registered(NodeId node, const wire::Hello::Reader& hello, Instant now);
  void on_node_gone(NodeId node, const transport::Event& gone, Instant now);
  /// Some node can be reached by others that could not before, or a job has got a driver. Where all can reach a node
  /// again that was lost to a job, that takes it back, from its next leg on; of one that is new to it its driver hears.
  void look_at_nodes(Instant now);
  /// Places that nobody has are to be other nodes': the driver's to say, who knows what nobody has.
  Result<nlohmann::json> move_places(const nlohmann::json& body, Instant now);
  /// It had no place in the job any more, and its part there is over.
  void on_left(NodeId node, const nlohmann::json& body);
  void on_driver_gone(NodeId node, const std::string& driver, Instant now);
  void on_cut_off(NodeId from, const nlohmann::json& body, Instant now);
  void tick(Instant now);
  std::optional<Instant> next_deadline() const;

 private:
  void close_those_over(Instant now);
  void compare_with_state();
  void write_state(Instant now);
  Result<nlohmann::json> answer_of(JobId job) const;
  Result<nlohmann::json> drain_worker(const nlohmann::json& body);
  Result<nlohmann::json> drain_node(NodeId node, bool whatever_stays);
  /// That of its driver; or why nobody can leave it.
  Result<transport::Peer> agent_to_drain(JobId job) const;
  Result<transport::Peer> agent_of_driver(JobId job) const;
  /// `worker`: nullopt: all of the node.
  void tell_drain(const transport::Peer& agent, JobId job, NodeId node, std::optional<std::int32_t> worker);
  Result<std::vector<std::int32_t>> vacant(const job::Options& options, const algorithms::Strategy& strategy,
                                           const std::vector<NodeId>& node_of) const;
  void take_back(Instant now);
  void tell_of_room();
  /// It can take part in the job's next leg, if there is one;
  bool may_join(JobId job, const JobEntry& entry, NodeId node) const;
  /// and is linked to all of the job.
  bool is_linked(const JobEntry& entry, NodeId node) const;
  bool can_join(JobId job, const JobEntry& entry, NodeId node) const;
  bool is_room(JobId job, const JobEntry& entry, NodeId node) const;
  bool has_room(JobId job, const JobEntry& entry) const;
  Result<void> check_move(JobId job, const JobEntry& entry, const std::map<std::int32_t, NodeId>& to) const;
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
  std::set<std::pair<JobId, NodeId>> told_of_room_;  ///< To its driver.
  bool compared_ = false;                            ///< What the heads before it have written, with what runs.
  std::optional<Instant> writes_from_{};             ///< Earlier where all nodes are there; nullopt: it does.
};

}  // namespace paceline::cluster
