#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/cluster/training/driver_events.h"
#include "algorithms/cluster/training/early_messages.h"
#include "algorithms/cluster/training/recent_changes.h"
#include "algorithms/cluster/training/training_job.h"
#include "runtime/observe/log.h"
#include "runtime/process/fd.h"
#include "runtime/transport/transport.h"
#include "scheduler/task_graph.h"

namespace paceline::cluster {

/// A node's parts of all jobs, and who hears what comes for which. What goes wrong in one fails that one, and none of
/// the others. Owned by the agent's control loop.
class NodeJobs {
 public:
  /// The agent's side. Of JobOutbox::beside, `follows` may come when the job is gone; the driver is told by `tell`.
  struct Around {
    NodeId self;
    const Clock& clock;
    observe::Log& log;
    std::function<JobOutbox()> outbox;
    DriverEvents::Send tell;
    std::function<void()> other_nodes_changed;
    std::function<void(JobId)> left;  ///< This node has no part in it any more: the head is to know.
  };
  NodeJobs(Around around, std::unique_ptr<collective::Averager> averager);

  /// Or hears of its next leg. Its driver hears of one that cannot be opened.
  Result<void> open(const wire::OpenJob::Reader& open);
  void close(JobId id);
  /// What comes before its job is open is kept, if the job may still come.
  void on_message(const transport::Peer& from, const wire::Envelope::Reader& envelope, transport::Frame bulk);
  /// A message that cannot be read: its job, if there is one, fails.
  void on_unreadable(const wire::Envelope::Reader& envelope, const std::string& why);
  /// A worker's packet over its Unix socket: a state that it was asked for.
  void on_captured(WorkerId worker, std::string_view packet, process::Fd state);
  void on_alive(WorkerId worker);
  /// `failed`: of its own making.
  void on_worker_gone(WorkerId worker, const TrainingJob::Ended& ended);
  /// Its driver has another agent.
  void on_driven(const wire::JobDriven::Reader& driven);
  /// The job goes on without another node.
  void on_node_gone(const wire::NodeGone::Reader& gone);
  /// Nothing more can be told to another node that is there: jobs with a part there fail.
  void fail_those_on(NodeId node, const std::string& why);
  void on_averaged();
  void tick(Instant now);
  std::optional<Instant> next_deadline() const;
  /// Of the averaging threads.
  int descriptor() const { return averager_->descriptor(); }

  /// Of all of them.
  std::set<NodeId> other_nodes() const;
  /// The newest job that the head has told of.
  JobId newest() const { return early_.newest(); }
  /// Those that are open.
  std::set<JobId> open_ones() const;
  /// Each of them, as a head that was started anew is to hear it.
  std::vector<std::pair<JobId, JobEntry>> entries() const;
  nlohmann::json status(Instant now) const;
  /// One of them has workers here.
  bool have_workers() const;

  /// Another node cannot be reached: jobs with a part there of which that is not known yet.
  std::vector<JobId> cut_off(NodeId node, const std::string& how);
  struct CutOff {
    JobId job;
    NodeId node;
    std::string how;
  };
  /// What is known so of nodes that are not lost.
  std::vector<CutOff> all_cut_off() const;

 private:
  TrainingJob* find(JobId id);
  void within(TrainingJob& job, const std::function<void()>& what);
  /// A node's part of a job, and its way to the driver, which is needed once more when the part is gone.
  struct Part {
    std::shared_ptr<DriverEvents> events;
    std::shared_ptr<RecentChanges> changes = std::make_shared<RecentChanges>();
    std::unique_ptr<TrainingJob> job;  ///< Its present leg's.
    EarlyMessages early = {};          ///< For a later leg.
  };
  Result<std::unique_ptr<TrainingJob>> make(JobId id, JobEntry entry, const Part& of);
  Result<void> on_next_leg(JobId id, Part& part, const wire::OpenJob::Reader& open);
  void skip_legs(JobId id, Part& part);
  /// What had come early.
  void hear(std::vector<EarlyMessages::Message> kept);
  JobOutbox outbox_of(JobId id, const Part& part);
  void begin_next_leg(JobId id, Part& part, Instant now);
  void close_those_left();
  void let_go(std::unique_ptr<TrainingJob> job);
  bool is_of_this_leg(Part& part, JobId named, const transport::Peer& from, const wire::Envelope::Reader& envelope,
                      transport::Frame& bulk);
  void on_session(TrainingJob& job, WorkerId worker, const wire::Envelope::Reader& envelope);
  void on_agent(TrainingJob& job, NodeId from, const wire::Envelope::Reader& envelope, transport::Frame bulk);

  Around around_;
  std::unique_ptr<collective::Averager> averager_;
  scheduler::TaskGraph graph_{{}};  // Compute and averaging tasks.
  std::map<JobId, Part> jobs_;
  std::map<std::pair<JobId, NodeId>, std::string> cut_off_;  // Who could not be reached, and why.
  EarlyMessages early_;
  EarlyMessages later_legs_;              // Of jobs that this node is to come back to.
  std::map<JobId, std::int32_t> closed_;  // With the leg that was the last one here.
  std::set<WorkerId> former_;             // Of jobs that are closed here, which may be opened again.
};

}  // namespace paceline::cluster
