#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/cluster/agent_links.h"
#include "algorithms/cluster/head_contact.h"
#include "algorithms/cluster/local_peers.h"
#include "algorithms/cluster/memory_lookout.h"
#include "algorithms/cluster/node_actors.h"
#include "algorithms/cluster/node_status.h"
#include "algorithms/cluster/node_workers.h"
#include "algorithms/cluster/output_post.h"
#include "algorithms/cluster/training/node_jobs.h"
#include "algorithms/cluster/workers.h"
#include "runtime/base/background.h"
#include "runtime/base/clock.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/turn_budget.h"
#include "runtime/collective/averager.h"
#include "runtime/observe/log.h"
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
    std::int32_t nodes = 1;  ///< Of the cluster, as far as is known at its start.
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
  /// Asks that its workers leave their jobs, and that it gets no others; false: there are none, or nobody to ask.
  bool drain();
  /// A job has workers here.
  bool trains() const { return jobs_.have_workers(); }
  /// The head says that the cluster ends.
  bool down() const { return down_; }

 private:
  /// Of a local peer, or from another node.
  using OnMessage = Result<void> (Agent::*)(const transport::Peer&, const wire::Envelope::Reader&,
                                            std::vector<transport::Frame>&);

  /// That the cluster has, or had: numbers from 0.
  std::int32_t nodes() const { return std::max(options_.nodes, links_.others().numbers()); }
  std::unique_ptr<Workers> make_workers(Workers::Listener listener);
  AgentLinks::Listener listen_to_links();
  LocalPeers::Listener listen_to_local();
  NodeWorkers::Around around_workers();
  NodeJobs::Around around_jobs();
  JobOutbox outbox_of_job();
  void act_on_time(Instant now);
  void begin_turn() { actors_.router().at(options_.clock->now()); }
  void handle(OnMessage handler, const transport::Peer& peer, const wire::Received& message,
              std::vector<transport::Frame>& frames);
  void refuse(const transport::Peer& peer, const wire::Received& message, const Error& error);
  // Local peers
  Result<void> on_local(const transport::Peer& peer, const wire::Envelope::Reader& envelope,
                        std::vector<transport::Frame>& frames);
  void on_hello(const transport::Peer& peer, const wire::Hello::Reader& hello);
  Result<void> on_local_request(const transport::Peer& peer, const wire::Request::Reader& request);
  void on_local_gone(const transport::Peer& peer);
  void on_session_said(WorkerId worker, channel::Frame frame);
  void on_worker_ended(WorkerId worker, const Workers::Listener::End& end);
  // Other agents and the head
  Result<void> on_peer(const transport::Peer& peer, const wire::Envelope::Reader& envelope,
                       std::vector<transport::Frame>& frames);
  Result<void> on_peer_request(NodeId from, const wire::Request::Reader& request);
  void on_head_gone();
  void on_node_gone(NodeId node, const std::string& how);
  void on_unsent(NodeId node, const Error& error);
  void report_cut_off(NodeId node, const std::string& how);
  void depend_on_nodes_in_use();
  bool tell_driver(const JobDriver& driver, wire::Message& message);
  /// What takes long, beside the loop; without threads, and before start(), at once.
  void beside(std::function<Result<void>()> work, std::function<void(Result<void>)> follows);

  Options options_;
  EventLoop& loop_;
  observe::Log log_;
  AgentLinks links_;
  LocalPeers local_;
  HeadContact head_;
  OutputPost output_;
  NodeWorkers workers_;
  NodeActors actors_;
  MemoryLookout memory_;
  NodeJobs jobs_;
  NodeStatus status_;
  std::unique_ptr<Background> background_;  // From start() on, if at all; ends before what its work follows to.
  bool down_ = false;
};

}  // namespace paceline::cluster
