#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "algorithms/cluster/training/job_entry.h"
#include "runtime/base/ids.h"
#include "runtime/base/instant.h"
#include "runtime/base/result.h"

namespace paceline::cluster {

/// Which jobs there are, and which agents run them. A head that was started anew learns it from the agents: each says
/// what it runs (on_runs), then who it is (on_registered). Where they do not agree, a job was just being opened or
/// closed when the old head ended, and that is carried through. Sans I/O.
class JobDirectory {
 public:
  struct Open {  ///< The node is to open it, or is to know its next leg.
    JobId job;
    NodeId node;
  };
  struct Close {  ///< All nodes are to close it; it is forgotten here.
    JobId job;
    JobEntry entry;
  };
  struct Lost {  ///< Its driver is to hear that its workers on this node are gone.
    JobId job;
    NodeId node;
    std::string cause;  ///< Of how its agent was lost last; empty: not known.
  };
  struct GoOn {  ///< This node is to go on without the lost one. It may be told twice.
    JobId job;
    NodeId node;
    NodeId lost;
    std::string cause;
  };
  struct CloseOn {  ///< The node runs what goes on without it, or was closed before it was there: it is to close it.
    JobId job;
    NodeId node;
  };
  struct Driven {  ///< The node is to hear that the job's driver has another agent. It may be told twice.
    JobId job;
    NodeId node;
    std::map<NodeId, std::uint64_t> heard{};  ///< Of what each node has told it, up to this number.
  };
  using Action = std::variant<Open, Close, Lost, GoOn, CloseOn, Driven>;
  using Actions = std::vector<Action>;
  static constexpr Duration kRegisterPatience = std::chrono::seconds(5);
  /// So long the leader's word is waited for, where two others cannot reach each other.
  static constexpr Duration kLeaderPatience = std::chrono::seconds(1);
  /// An agent that is silent for so long, or that a head has never seen, has ended.
  static constexpr Duration kSilentPatience = std::chrono::seconds(60);
  /// Within which a node comes back to a job so often at most.
  static constexpr Duration kBackWithin = std::chrono::hours(1);
  /// So long a job whose driver's agent is gone goes on without one.
  static constexpr Duration kDriverPatience = std::chrono::seconds(10);

  /// `newest`: the highest number that a job is known to have had.
  explicit JobDirectory(Instant now, JobId newest = JobId{0}) : start_(now), newest_(newest) {}

  /// A new job, under a number that no job had; Open for each of its nodes.
  JobId add(JobEntry entry, Actions& out);
  const JobEntry* find(JobId job) const;
  const std::map<JobId, JobEntry>& jobs() const { return jobs_; }
  /// The job, of which there is one, is to go on with the strategy, and the factor on learning rates, of these: Open
  /// for its nodes.
  Actions begin_next_leg(JobId job, const job::Options& options);
  /// A node that it was lost with is to take part in it again, from the next leg on: Open for it and the others.
  Actions take_back(JobId job, NodeId node, Instant now);
  /// Places for workers that nobody has are other nodes' from the next leg on, which may be new to the job: Open for
  /// those, and for the others. A lost node that has no place left has no part in it any more.
  Actions move_places(JobId job, const std::map<std::int32_t, NodeId>& to);
  /// It had no place any more (move_places), and its part of the job is over.
  void on_left(NodeId node, JobId job);
  /// Whether it may: its agent is there, anew, and it has not come back this often within an hour.
  bool may_come_back(JobId job, NodeId node, int most, Instant now) const;
  /// The job went on without it although it was here, and still is: it would be lost again.
  bool is_cut_off(JobId job, NodeId node) const;
  /// Close, where there is such a job.
  Actions close(JobId job);
  /// Close for all jobs of this driver.
  Actions on_driver_gone(NodeId node, const std::string& peer);
  /// The job's driver has come back under its name, through this node's agent. `not_found`: that is no driver of such a
  /// job.
  Result<Actions> move_driver(JobId job, const std::string& peer, NodeId to,
                              const std::map<NodeId, std::uint64_t>& heard, Instant now);

  void on_runs(NodeId node, JobId job, const JobEntry& entry);
  /// `newest`: the highest number of all jobs that this agent was ever told of.
  Actions on_registered(NodeId node, std::uint64_t incarnation, JobId newest);
  std::optional<std::uint64_t> incarnation(NodeId node) const;
  /// `cause`: for its Lost; empty: not known. One that is only silent may come back as it was: what it alone may decide
  /// waits for it.
  Actions on_gone(NodeId node, std::string cause, bool is_silent = false);
  /// `from` cannot reach `node` any more, although both may be there: one of them is lost to this job. It may be said
  /// again.
  Actions on_cut_off(NodeId from, NodeId node, JobId job, const std::string& cause, Instant now);
  /// Members that a head of its age should have heard of are lost, and of two that cannot reach each other one.
  Actions tick(Instant now);
  /// When tick() may have something to say.
  std::optional<Instant> next_deadline() const;

 private:
  struct Registered {
    std::uint64_t incarnation = 0;
    JobId newest;
    std::set<JobId> cut_off = {};  ///< Jobs that went on without it although it was here.
  };
  void compare(JobId job, JobEntry& entry, Actions& out);
  void take_part(JobId job, JobEntry& entry, NodeId node);
  bool has_not_come_back(JobId job, const JobEntry& entry, NodeId node) const;
  void compare_lost(JobId job, const JobEntry& entry, Actions& out);
  void lose(JobId job, const JobEntry& entry, NodeId node, Actions& out);
  bool is_here(NodeId node) const { return registered_.contains(node); }
  bool has_driver(const JobEntry& entry) const;
  bool is_the_drivers(NodeId node, const JobEntry& entry) const;
  bool may_go_on_without(const JobEntry& entry, NodeId node) const;
  bool goes_on_without(const JobEntry& entry, NodeId node) const;
  void close_all(const std::vector<JobId>& jobs, Actions& out);
  void close_without_driver(Instant now, Actions& out);
  void part(Instant now, Actions& out);
  void lose_for_good(JobId job, JobEntry& entry, NodeId node, Actions& out);
  Actions compare_all();

  Instant start_;
  std::map<JobId, JobEntry> jobs_;
  std::map<NodeId, Registered> registered_;
  std::map<NodeId, std::map<JobId, std::int32_t>> runs_;  ///< With the newest leg that it knows.
  std::set<std::pair<JobId, NodeId>> told_lost_;
  struct Apart {  ///< Two members that cannot reach each other; somebody else's word may decide.
    NodeId from, node;
    std::string cause;
    Instant until;
  };
  std::map<JobId, std::vector<Apart>> apart_;
  std::map<JobId, Instant> without_driver_;  ///< Until when they may go on so.
  std::set<NodeId> ended_;                   ///< Nodes whose agents have ended, and that have no other ones yet.
  std::map<NodeId, Instant> silent_;         ///< Those of drivers that are not here and may be, since then.
  std::map<NodeId, std::string> causes_;     ///< Why each that ever went did, the last time.
  std::map<std::pair<JobId, NodeId>, std::vector<Instant>> came_back_;  ///< In the last hour.
  JobId newest_;
};

}  // namespace paceline::cluster
