#pragma once

#include <algorithm>
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
  /// What a leg takes over from the one before.
  struct Before {
    scheduler::AveragingService::Reached reached;
    JobView::Figures figures;
    JobEvaluation evaluation;
    LoggedValues logged;
    store::NamedObjects objects;
    SharedModel model;
    std::vector<Rank> places{};                                 ///< Of this node,
    std::map<Rank, WorkerId> workers{};                         ///< and who opens a share anew there.
    std::vector<std::pair<Rank, Returns::Share>> unanswered{};  ///< On their way back, or to a place.
    std::map<NodeId, std::int32_t> lost{};                      ///< With the newest leg that was known of then.
    std::int32_t newest_leg = 0;
    std::optional<JobEntry> wanted{};  ///< After this one.
    bool stops_soon = false;
    Instant ended{};  ///< When it was over.
  };

  TrainingJob(JobSettings settings, scheduler::TaskGraph& graph, collective::Averager& averager, JobOutbox outbox,
              std::optional<Before> before = {});
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
  void on_settled(const wire::Settled::Reader& settled, Instant now);
  struct Ended {
    std::string how;
    bool failed = false;   ///< Of its own making (a crash, an exit status), which ends the job; else the others go on.
    bool returns = false;  ///< Neither: another process is started in its place.
  };
  void on_worker_gone(WorkerId worker, const Ended& ended, Instant now);
  /// A worker is asked to leave: it does after its next average. One that is not there now is not asked.
  void drain(Rank rank);
  /// It is to go on so, in another leg: it does from where all have the same model.
  void on_next_leg(const JobEntry& next, Instant now);
  /// Another node's workers have said how long this leg is; this one may have none left.
  void on_plan_elsewhere(const wire::Report::Plan::Reader& said, Instant now) { on_plan(said, now); }
  /// The newest leg that is known of, with whom it has lost.
  JobEntry newest_entry() const;
  /// The node comes back to the job with this leg, of which it has heard nothing from the others yet, and there is a
  /// later one: that; nullptr otherwise.
  const JobEntry* waits_to_begin() const { return is_back_ && !averagings_ && wanted_ ? &*wanted_ : nullptr; }
  /// It has ended for a leg, which is to take its place (begin_next_leg).
  bool has_ended_for_a_leg() const { return change_ && !stopped_; }
  struct Change {
    JobEntry next;
    std::int64_t first;  ///< Update that it begins with.
  };
  const Change& change() const { return *change_; }
  /// Of the job's time limit; 0: it has none.
  double time_left_s(Instant now) const;
  /// By its workers, in all legs.
  std::map<Rank, JobSettings::Worked> worked() const;
  /// What that one takes over. Nothing else is done here after it but what follows.
  Before take_what_goes_on(Instant now);
  /// It is there: workers go on in it.
  void begin_next_leg() { averagings_->begin_next_leg(change_->next.leg); }
  /// In that leg this node has no place: its workers end, as all do at a job's end.
  void leave(Instant now);
  /// And they have, and those that were on their way back.
  bool has_left() const { return leaving_ && leaving_->empty() && returns_.empty(); }
  /// Another node is lost: those that are left go on without its workers.
  void on_node_gone(NodeId node, const std::string& cause, Instant now);
  bool on_reduced(std::uint64_t id, Instant now);
  /// Workers end at their next look at the control page.
  void stop(const std::string& reason, Instant now);
  /// The same; the driver itself has said that the job is over.
  void close(Instant now);
  /// It ends on all nodes, and the driver hears why.
  void fail_job(const std::string& text, Instant now);
  void tick(Instant now);
  std::optional<Instant> next_deadline() const;

  /// This node's share of progress events.
  void write(wire::Progress::Builder progress, Instant now) const;
  /// This node's share of `status`: the same, and the newest of what is logged and evaluated.
  nlohmann::json status(Instant now) const;
  const JobSettings& settings() const { return settings_; }
  /// Or one is on its way back.
  bool has_workers() const { return leaving_ ? !has_left() : !members_.all_local_have_left() || !returns_.empty(); }
  std::set<WorkerId> workers() const;
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
  void take_over(Before before);
  void tell_ledger_of_leg();
  void refuse_since_it_leaves(Rank rank, WorkerId worker, std::uint64_t request);
  void on_plan(const wire::Report::Plan::Reader& said, Instant now);
  void tell_others(const wire::Report::Plan::Reader& said, Instant now);
  std::optional<JobEntry> next_leg(Version v) const;
  std::map<NodeId, std::int32_t> lost_in(const JobEntry& next) const;
  Before nothing_before() const;
  Result<void> learn(const wire::Report::Plan::Reader& said);
  void wish_next_leg();
  bool check_leg(const JobEntry& next) const;
  void tell_if_nobody_begins(Instant now);
  void end_if_nobody_begins(Instant now);
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

  JobSettings settings_;
  scheduler::TaskGraph& graph_;
  collective::Averager& averager_;
  const JobOutbox outbox_;
  const JobNews news_;
  std::shared_ptr<bool> here_ = std::make_shared<bool>(true);  // Until let_go().
  std::shared_ptr<scheduler::AveragingService> averagings_;
  std::map<Rank, Opened> opened_;             // Before the plan is known.
  std::vector<std::function<void()>> early_;  // Messages of other nodes that came before the plan.
  SharedModel model_{};
  std::set<NodeId> without_model_;  ///< Nodes on which nobody is there who could begin the leg.
  std::set<Rank> to_reopen_;        ///< Workers of the leg before, which have not opened their shares yet.
  scheduler::AveragingService::Reached before_{};  ///< What the leg before had come to.
  Instant ended_before_{};                         ///< When it was over.
  std::optional<JobEntry> wanted_;
  std::int32_t newest_leg_ = 0;          ///< That the head has told of.
  std::map<NodeId, std::int32_t> gone_;  ///< Nodes that are lost, with the newest leg that was known of then.
  std::optional<Change> change_;
  std::optional<std::set<WorkerId>> leaving_;  ///< Those that have not ended yet.
  std::vector<Rank> gained_;                   ///< Places that were another node's in the leg before.
  std::int64_t planned_last_ = 0;
  Instant planned_at_{};
  bool has_begun_here_ = false;  ///< A worker of this node has.
  const bool is_back_;           ///< The node was lost, or new, before this leg.
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
