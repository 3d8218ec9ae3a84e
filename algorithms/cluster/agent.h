#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "actors/router/actor_router.h"
#include "algorithms/cluster/head_requests.h"
#include "algorithms/cluster/kept_states.h"
#include "algorithms/cluster/memory_watch.h"
#include "algorithms/cluster/other_agents.h"
#include "algorithms/cluster/output_post.h"
#include "algorithms/cluster/session_channels.h"
#include "algorithms/cluster/training/node_jobs.h"
#include "algorithms/cluster/worker_spans.h"
#include "algorithms/cluster/workers.h"
#include "runtime/base/background.h"
#include "runtime/base/clock.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/turn_budget.h"
#include "runtime/collective/averager.h"
#include "runtime/observe/log.h"
#include "runtime/transport/backlog.h"
#include "runtime/transport/transport.h"

namespace paceline::cluster {

/// One node of a cluster: its worker processes, its part of every job, and the post office between its peers (drivers,
/// workers, sessions, over ipc), the other agents and the head (over tcp). Decodes, steps a core, sends; decides
/// nothing itself. Owned by its process's control loop.
///
/// No input ends it: what goes wrong with a message is the answer to whoever sent it, what goes wrong within a job
/// fails that job, and the rest is a line in the log.
class Agent {
 public:
  struct Options {
    NodeId node;
    std::int32_t nodes = 1;
    std::int32_t cpus = 1;
    std::uint64_t memory = std::uint64_t{1} << 40;  ///< Bytes that its tasks may ask for.
    std::uint64_t memory_limit = 0;                 ///< That its workers together may take; 0: what there is.
    std::size_t descriptors = 4096;                 ///< That this process may have open.
    std::string directory;                          ///< The cluster's runtime directory.
    std::string local_address;                      ///< ipc address that workers and drivers connect to.
    std::string peer_address;                       ///< tcp address that other agents connect to.
    std::string head_address;
    std::uint64_t incarnation = 0;  ///< Of this process: a number that no other agent of the cluster has or had.
    std::uint32_t starts = 0;       ///< Of agents of this node before it.
    const Clock* clock = &machine_clock();
    std::size_t messages_a_turn = TurnBudget::kMessages;  ///< Of one transport; then others have their turn.
    /// None: processes.
    std::function<std::unique_ptr<Workers>(Workers::Listener)> workers{};
    bool has_threads = true;  ///< Else what takes long is done at once, and nobody looks at the workers' memory.
  };

  /// `local` listens for this node's processes, `peers` for the other agents.
  Agent(Options options, EventLoop& loop, std::unique_ptr<transport::Transport> local,
        std::unique_ptr<transport::Transport> peers, std::unique_ptr<collective::Averager> averager, observe::Log log);
  ~Agent();

  /// Connects to the head, registers there, and starts to watch its descriptors.
  Result<void> start();
  void tick(Instant now);
  std::optional<Instant> next_deadline() const;
  /// Since when there is no head: everything but what only a head can do goes on.
  std::optional<Instant> headless() const { return head_.gone(); }
  /// The head says that the cluster ends.
  bool down() const { return down_; }

 private:
  void act_on_time(Instant now);
  // agent_memory.cc
  std::unique_ptr<Workers> make_workers(Workers::Listener listener);
  static MemoryWatch::Options memory_options(const Options& options);
  std::optional<Instant> next_memory_look() const;
  void look_at_memory(Instant now);
  void look_at_workers();
  void on_memory(const Result<void>& done, MemoryWatch::Look& look);
  // Local peers
  void poll_local();
  Result<void> on_local(const transport::Peer& peer, const wire::Envelope::Reader& envelope,
                        std::vector<transport::Frame>& frames);
  Result<void> on_actors(const transport::Peer& peer, NodeId from, const wire::Envelope::Reader& envelope,
                         std::vector<transport::Frame>& frames);
  void on_hello(const transport::Peer& peer, const wire::Hello::Reader& hello);
  Result<void> on_local_request(const transport::Peer& peer, const wire::Request::Reader& request);
  Result<void> ask_head(HeadRequests::Request request);
  Result<void> tell_owner(const transport::Peer& peer, const wire::Request::Reader& request);
  Result<void> let_leave(const transport::Peer& peer, const wire::Request::Reader& request);
  Result<void> tell_line(const transport::Peer& peer, const wire::Request::Reader& request);
  void on_local_gone(const transport::Peer& peer);
  void on_session_said(WorkerId worker, channel::Frame frame);
  // Other agents and the head
  void poll_peers();
  void poll_again(const transport::Transport& transport);
  Result<void> on_peer(const transport::Peer& peer, const wire::Envelope::Reader& envelope,
                       std::vector<transport::Frame>& frames);
  Result<void> on_peer_request(NodeId from, const wire::Request::Reader& request);
  void on_reply(const wire::Reply::Reader& reply);
  // Names of actors (agent_names.cc)
  void carry_out(const actors::ActorRouter::Claim& claim);
  void carry_out(const actors::ActorRouter::Unclaim& unclaim);
  void on_claim_decided(std::uint64_t request, const Result<std::string>& answer);
  void tell_names();
  void tell_whether_named(std::uint64_t request, const nlohmann::json& body);
  void on_head_gone();
  void register_at_head();
  void ask(const HeadRequests::Request& request);
  void on_nodes(const wire::Nodes::Reader& nodes);
  void act(const OtherAgents::Actions& actions);
  void carry_out(const OtherAgents::Connect& connect);
  void carry_out(const OtherAgents::TellLinked& linked);
  void carry_out(const OtherAgents::Reachable& reachable);
  void on_node_gone(NodeId node, const std::string& how);
  void depend_on_nodes_in_use();
  void report_cut_off(NodeId node, const std::string& how);
  void tell_cut_off(NodeId node, const std::vector<JobId>& jobs, const std::string& how);
  // What there is to be seen (agent_views.cc)
  void on_node_status(std::uint64_t query, const nlohmann::json& body);
  nlohmann::json actors_view(const std::string& which, Instant now) const;
  nlohmann::json workers_view(const std::string& which, bool running, Instant now) const;
  nlohmann::json tasks_view(Instant now) const;
  nlohmann::json holds_view(Instant now) const;
  void answer_with_spans(std::uint64_t query, nlohmann::json status);
  void answer_status(std::uint64_t query, const nlohmann::json& status);
  // Actors
  void act(const actors::ActorRouter::Actions& actions);
  void carry_out(const actors::ActorRouter::Fork& fork);
  void carry_out(const actors::ActorRouter::Kill& kill);
  void carry_out(const actors::ActorRouter::Send& send);
  void carry_out(const actors::ActorRouter::Forward& forward);
  void carry_out(const actors::ActorRouter::Warn& warn);
  void carry_out(const actors::ActorRouter::Forget& forget);
  // Processes
  void on_worker_ended(WorkerId worker, const Workers::Listener::End& end);
  void on_worker_said(WorkerId worker, process::DescriptorMessage message);
  void open_session(WorkerId worker, std::uint64_t request);
  void give_state(WorkerId worker, std::uint64_t request);
  void keep_state(WorkerId worker, std::uint64_t request, process::Fd state);
  // Jobs
  NodeJobs::Around around_jobs();
  JobOutbox outbox_of_job();
  void close_job(JobId job);
  /// What takes long, beside the loop; without threads, and before start(), at once.
  void beside(std::function<Result<void>()> work, std::function<void(Result<void>)> follows);
  bool tell_driver(const JobDriver& driver, wire::Message& message);

  void refuse(const transport::Peer& peer, const wire::Received& message, const Error& error);
  void answer(const transport::Peer& peer, const wire::Envelope::Reader& envelope, const Error& error);
  void send(const transport::Peer& peer, std::vector<transport::Frame> frames);
  void send_local(const transport::Peer& peer, std::vector<transport::Frame> frames);
  void send_peer(const transport::Peer& peer, wire::Message& message, std::vector<transport::Piece> bulk = {});
  void send_frames(const transport::Peer& peer, std::vector<transport::Frame> frames);
  void on_unsent(const transport::Peer& peer, const Error& error);
  bool send_to_driver(const transport::Peer& peer, std::vector<transport::Frame> frames);
  void give_up(const transport::Peer& peer, const Error& error);

  Options options_;
  EventLoop& loop_;
  std::unique_ptr<transport::Transport> local_;
  std::unique_ptr<transport::Transport> peers_;
  transport::Backlog to_local_;
  observe::Log log_;
  actors::ActorRouter router_;
  actors::ProcessIds process_ids_;
  std::unique_ptr<Workers> workers_;
  SessionChannels sessions_;
  KeptStates states_;
  WorkerSpans spans_;
  MemoryWatch memory_;
  bool looking_ = false;  ///< At their memory.
  OutputPost output_;
  NodeJobs jobs_;
  HeadRequests head_;
  std::uint64_t next_request_ = 1;           // Of its own to the head.
  std::map<std::uint64_t, ActorId> claims_;  // Those that ask for names.
  std::unique_ptr<Background> background_;   // From start() on, if at all; ends before what its work follows to.
  std::unique_ptr<Background> lookout_;      // The same, for looks that must not wait behind others' work.
  OtherAgents others_;
  std::size_t actors_elsewhere_ = 0;  // When depends_on() was last told.
  bool down_ = false;
  bool unread_ = false;  // A transport without a descriptor has more to tell.
};

}  // namespace paceline::cluster
