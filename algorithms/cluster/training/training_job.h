#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/cluster/training/job_hold.h"
#include "algorithms/cluster/training/job_members.h"
#include "algorithms/cluster/training/job_news.h"
#include "algorithms/cluster/training/job_replicas.h"
#include "algorithms/cluster/training/job_returns.h"
#include "algorithms/cluster/training/job_settings.h"
#include "algorithms/cluster/training/job_view.h"
#include "algorithms/cluster/training/logged_values.h"
#include "algorithms/cluster/training/signs_of_life.h"
#include "algorithms/cluster/training/worker_share.h"
#include "runtime/base/json.h"
#include "runtime/collective/averager.h"
#include "runtime/store/named_objects.h"
#include "runtime/wire/codec.h"
#include "scheduler/shell/averaging_service.h"

namespace paceline::cluster {

/// One node's part of a training job: who is there, its workers' windows and averagings (AveragingService), replicas,
/// shared objects; versions at which workers are held are JobHold's. Owned by the agent's control loop.
///
///   openShare (each worker) -> windows -> plan (first worker) -> rounds run -> ... last version executed -> workers
///   end -> closeJob
class TrainingJob {
 public:
  TrainingJob(JobSettings settings, scheduler::TaskGraph& graph, collective::Averager& averager, JobOutbox outbox);
  TrainingJob(const TrainingJob&) = delete;
  TrainingJob& operator=(const TrainingJob&) = delete;
  /// What is left of it is memory, which any thread may give back. Called before its owner lets go.
  void let_go();

  void on_open_share(const wire::OpenShare::Reader& share, Instant now);
  void on_arrive(const wire::Arrive::Reader& arrive, Instant now);
  void on_report(const wire::Report::Reader& report, Instant now);
  /// The worker's I/O thread has answered.
  void on_alive(WorkerId worker, Instant now);
  void on_open_object(WorkerId worker, const wire::ObjectKey::Reader& key);
  void on_seal_object(const wire::ObjectKey::Reader& key);
  void on_replica_wanted(const wire::Replica::Reader& wanted, NodeId from, Instant now);
  void on_replica_none(const wire::Replica::Reader& none, NodeId from, Instant now);
  /// A worker's packet over its Unix socket: a captured replica.
  void on_captured(const wire::Replica::Reader& replica, process::Fd state);
  void on_replica_data(const wire::Replica::Reader& replica, std::vector<std::byte> bytes);
  /// A message of another agent for this job's averagings.
  void on_averaging_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                            Instant now);
  void on_released(const wire::Released::Reader& released, Instant now) { hold_.on_released(released, now); }
  void on_settled(const wire::Settled::Reader& settled, Instant now) { hold_.on_settled(settled, now); }
  struct Ended {
    std::string how;
    bool failed = false;   ///< Of its own making (a crash, an exit status), which ends the job; else the others go on.
    bool returns = false;  ///< Neither: another process is started in its place.
  };
  void on_worker_gone(WorkerId worker, const Ended& ended, Instant now);
  /// A worker is asked to leave: it does after its next average. One that is not there now is not asked.
  void drain(Rank rank);
  /// Another node is lost: those that are left go on without its workers.
  void on_node_gone(NodeId node, const std::string& cause, Instant now);
  bool on_reduced(std::uint64_t id, Instant now);
  /// Workers end at their next look at the control page.
  void stop(const std::string& reason, Instant now);
  /// It ends on all nodes, and the driver hears why.
  void fail_job(const std::string& text, Instant now);
  void tick(Instant now);
  std::optional<Instant> next_deadline() const;

  /// This node's share of progress events.
  void write(wire::Progress::Builder progress, Instant now) const;
  /// This node's share of `status`: the same, and the newest of what is logged and evaluated.
  nlohmann::json status(Instant now) const;
  const JobSettings& settings() const { return settings_; }
  bool owns(WorkerId worker) const { return members_.rank_of(worker).has_value() || returns_.has(worker); }
  /// Those that have workers of the job, are not this one, and are not lost.
  std::set<NodeId> other_nodes() const { return members_.other_nodes(); }
  const std::set<NodeId>& lost_nodes() const { return members_.lost_nodes(); }

 private:
  struct Opened {
    memory::Window window;
    memory::ControlPage control;
  };

  /// Nothing follows where the job was let go of.
  void beside(std::function<Result<void>()> work, JobOutbox::Follows follows);
  void on_share_made(Rank rank, WorkerId worker, std::uint64_t request, WorkerShare& share);
  void give(const store::NamedObjects::Given& object);
  void on_plan(const wire::Report::Plan::Reader& said, Instant now);
  void on_metric(Rank rank, std::int64_t update, const wire::Report::Metric::Reader& metric, Instant now);
  void stop_soon(const std::string& why);
  void on_drained(Rank rank, Instant now);

  // Events of the averagings
  void follow_up(Instant now);
  void handle(const scheduler::AveragingService::Executed& executed, Instant now);
  void handle(const scheduler::AveragingService::Left& left, Instant now);
  void handle(const scheduler::AveragingService::Admitted& admitted, Instant now);
  void handle(const scheduler::AveragingService::WentOn& went_on, Instant now);
  void handle(const scheduler::AveragingService::Failed& failed, Instant now);

  // Who is there
  void look_for_life(Instant now);
  void look_for_start(Instant now);
  std::vector<Rank> starting() const;
  std::string not_in_time() const;
  bool lose_node(NodeId node, const std::string& cause, Instant now);
  void end_where_this_node_was_lost();
  bool lose(Rank rank);
  bool comes_back() const;
  bool takes_place(Rank rank) const;
  void start_again(Rank rank, const std::string& how);
  void end_worker(Rank rank, const std::string& why);
  void go_on_without(Rank rank, const std::string& how, Instant now);

  // The end
  void stop_everywhere(const std::string& reason, Instant now);
  void to_all_nodes(wire::Message& message);

  const JobSettings settings_;
  scheduler::TaskGraph& graph_;
  collective::Averager& averager_;
  const JobOutbox outbox_;
  const JobNews news_;
  std::shared_ptr<bool> here_ = std::make_shared<bool>(true);  // Until let_go().
  std::shared_ptr<scheduler::AveragingService> averagings_;
  std::map<Rank, Opened> opened_;             // Before the plan is known.
  std::vector<std::function<void()>> early_;  // Messages of other nodes that came before the plan.
  std::uint64_t outer_elements_ = 0;
  JobMembers members_;
  store::NamedObjects objects_;
  JobReplicas replicas_;
  LoggedValues logged_;
  JobView view_;
  SignsOfLife life_;
  JobReturns returns_;
  JobHold hold_;
  std::optional<Instant> began_;  ///< Waiting for workers to share their models.
  Instant looked_{};
  bool stops_soon_ = false;  ///< A worker has asked for the end.
  bool stopped_ = false;
  bool stepped_ = false;
  Instant next_progress_{};
};

}  // namespace paceline::cluster
