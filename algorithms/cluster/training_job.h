#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "algorithms/cluster/evaluations.h"
#include "algorithms/cluster/job_end.h"
#include "algorithms/cluster/job_entry.h"
#include "algorithms/cluster/kept_checkpoints.h"
#include "algorithms/cluster/logged_values.h"
#include "algorithms/cluster/replica_exchange.h"
#include "algorithms/cluster/shared_objects.h"
#include "algorithms/cluster/signs_of_life.h"
#include "algorithms/strategy.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/collective/averager.h"
#include "runtime/wire/codec.h"
#include "scheduler/averaging_service.h"

namespace paceline::cluster {

/// One node's part of a training job: its workers' windows and averagings (AveragingService), evaluations, replicas,
/// shared objects and what the driver is told. Owned by the agent's control loop.
///
///   openShare (each worker) -> windows -> plan (first worker) -> rounds run -> ... last version executed -> workers
///   end -> closeJob
class TrainingJob {
 public:
  struct Settings {
    JobId job;
    NodeId self;
    JobEntry entry;
    algorithms::Strategy strategy;
    const Clock* clock = &machine_clock();
  };
  /// How the job reaches everybody else; the agent implements it.
  struct Outbox {
    std::function<void(NodeId, wire::Message&, std::vector<std::vector<std::byte>>)> to_node;
    std::function<void(const nlohmann::json&)> to_driver;
    /// A JSON answer with descriptors to a worker's session.
    std::function<void(WorkerId, const nlohmann::json&, const std::vector<int>&)> to_worker;
    /// Ends a worker, for good; whoever waits for it hears the reason.
    std::function<void(WorkerId, const std::string&)> end_worker;
    /// Asks a worker's I/O thread for a sign of life.
    std::function<void(WorkerId)> ask_for_life;
    /// 'T' when the process is stopped, 'Z' or 0 when it has ended.
    std::function<char(WorkerId)> process_state;
    /// Beside the control loop; `follows` back on it.
    std::function<void(std::function<Result<void>()> work, std::function<void(const Result<void>&)> follows)> beside;
    /// -1: it has ended.
    std::function<std::int64_t(WorkerId)> process_id;
  };

  TrainingJob(Settings settings, scheduler::TaskGraph& graph, collective::Averager& averager, Outbox outbox);
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
  /// A worker's packet over its Unix socket: a captured replica. Takes the descriptor.
  void on_captured(Rank rank, std::int64_t update, std::uint64_t size, int fd, Instant now);
  void on_replica_data(const wire::Replica::Reader& replica, std::vector<std::byte> bytes);
  /// A message of another agent for this job's averagings.
  void on_averaging_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                            Instant now);
  void on_released(const wire::Released::Reader& released, Instant now);
  void on_settled(const wire::Settled::Reader& settled, Instant now);
  /// `failed`: of its own making (a crash, an exit status), which ends the job; else it leaves and the others go on.
  void on_worker_gone(WorkerId worker, const std::string& how, bool failed, Instant now);
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
  nlohmann::json view(Instant now) const;
  /// This node's share of `status`: the same, and the newest of what is logged and evaluated.
  nlohmann::json status(Instant now) const;
  const Settings& settings() const { return settings_; }
  bool owns(WorkerId worker) const { return rank_of_.contains(worker); }
  /// Those that have workers of the job, are not this one, and are not lost.
  std::set<NodeId> other_nodes() const;
  const std::set<NodeId>& lost_nodes() const { return lost_nodes_; }

 private:
  /// Nothing follows where the job was let go of.
  void beside(std::function<Result<void>()> work, std::function<void(const Result<void>&)> follows);
  struct Share;
  void on_share_made(Rank rank, WorkerId worker, Share& share);
  void on_plan(const nlohmann::json& plan, Instant now);
  bool exchanges() const;
  bool own_pace() const;
  bool weighs_by_samples() const { return settings_.strategy.tiers.back().weighs_by_samples; }
  Result<void> read_replay(scheduler::AveragingService::JobOptions& job) const;
  void on_evaluated(Rank rank, std::int64_t update, double value, Instant now);
  void drain(Instant now);
  void handle(const scheduler::AveragingService::Executed& executed, Instant now);
  void handle(const scheduler::AveragingService::Left& left, Instant now);
  void handle(const scheduler::AveragingService::Failed& failed, Instant now);
  void end_evaluation(Instant now);
  void ask_for_checkpoint(Instant now);
  void on_saved(Rank rank, std::int64_t update);
  void send_released(Version v, bool ends);
  void release(Version v, Instant now);
  void end_here(Version v, Instant now);
  bool is_settled(Rank rank);
  void settle(Instant now);
  Duration leave_patience() const;
  void leave_behind(Rank rank, WorkerId worker);
  std::vector<Rank> starting() const;
  std::string not_in_time() const;
  bool lose(Rank rank);
  void tell_left(Rank rank, const std::string& text);
  void tell_ended(Rank rank, const std::string& text);
  void look_for_life(Instant now);
  void go_on_without(Rank rank, const std::string& how, Instant now);
  bool is_evaluating(Rank rank) const;
  /// This node's samples/s, loss and waiting workers, for the trace.
  void count(const nlohmann::json& view, Instant now);
  void stop_everywhere(const std::string& reason, Instant now);
  void to_all_nodes(wire::Message& message);
  ReplicaExchange::Donors donors();
  void act(const ReplicaExchange::Actions& actions);
  void carry_out(const ReplicaExchange::Give& give);
  void carry_out(const ReplicaExchange::Send& send);
  void carry_out(const ReplicaExchange::Capture& capture);
  void carry_out(const ReplicaExchange::AskNode& ask);
  void carry_out(const ReplicaExchange::SendNone& none);
  void carry_out(const ReplicaExchange::GoOn& go_on);
  std::vector<Rank> local_ranks() const;

  Settings settings_;
  scheduler::TaskGraph& graph_;
  collective::Averager& averager_;
  Outbox outbox_;
  std::shared_ptr<bool> here_ = std::make_shared<bool>(true);  // Until let_go().
  std::shared_ptr<scheduler::AveragingService> averagings_;
  struct Opened {
    memory::Window window;
    memory::ControlPage control;
  };
  std::map<Rank, Opened> opened_;             // Before the plan is known.
  std::vector<std::function<void()>> early_;  // Messages of other nodes that came before the plan.
  std::uint64_t outer_elements_ = 0;
  std::map<WorkerId, Rank> rank_of_;
  std::map<Rank, WorkerId> worker_of_;
  std::set<Rank> gone_;
  std::set<NodeId> lost_nodes_;
  SharedObjects objects_;
  ReplicaExchange replicas_;
  Evaluations evaluations_;  ///< Node 0, and what is kept of them.
  KeptCheckpoints kept_;
  LoggedValues logged_;
  nlohmann::json evaluation_;  ///< Node 0: the newest one; null: there was none, or no metric.
  std::optional<Version> evaluating_;
  std::optional<Rank> evaluator_;
  Instant evaluating_since_{};
  std::optional<Instant> saved_;  ///< Node 0: when a checkpoint was asked for last, or the job began.
  std::set<Rank> saving_;         ///< Asked, and have not answered; the next one is asked of another.
  JobEnd end_;
  SignsOfLife life_;
  std::optional<Instant> began_;  ///< Waiting for workers to share their models.
  Instant looked_{};
  bool stops_soon_ = false;             ///< A worker has asked for the end.
  std::optional<Instant> finished_at_;  ///< Workers are to end by themselves from here on.
  bool stopped_ = false;
  bool stepped_ = false;
  Instant next_progress_{};
  double last_loss_ = 0;
  std::vector<float> step_s_;
  std::int64_t first_version_ = 0;
  Version last_version_{-1};
  double last_clock_s_ = 0;
  std::int64_t samples_ = 0;
  struct Counted {
    Instant at{};
    std::int64_t samples = 0;
  };
  Counted counted_;  ///< What the trace was told last.
};

}  // namespace paceline::cluster
