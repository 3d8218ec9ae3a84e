#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/process_ids.h"
#include "actors/router/actor_router.h"
#include "algorithms/cluster/agent_links.h"
#include "algorithms/cluster/head_contact.h"
#include "algorithms/cluster/local_peers.h"
#include "algorithms/cluster/node_workers.h"
#include "algorithms/cluster/output_post.h"

namespace paceline::cluster {

/// The shell of a node's ActorRouter: decodes what is said of actors and tasks, steps it, and carries out its actions.
/// Owned by the agent's control loop.
class NodeActors {
 public:
  struct Options {
    NodeId node;
    std::int32_t cpus = 1;
    std::uint64_t memory = 0;     ///< Bytes that its tasks may ask for.
    std::size_t descriptors = 0;  ///< That this process may have open: they bound its workers.
    std::string directory;        ///< The cluster's.
    std::uint32_t starts = 0;     ///< Of agents of this node before.
  };
  struct Around {
    HeadContact& head;
    AgentLinks& links;
    LocalPeers& local;
    NodeWorkers& workers;
    OutputPost& output;
    observe::Log& log;
    std::function<void(process::Fd)> drop;       ///< What an actor has left: to close it may take long.
    std::function<std::set<JobId>()> open_jobs;  ///< Of this node.
    std::function<void()> elsewhere_changed;     ///< ActorRouter::owns_actors_on().
  };

  NodeActors(Options options, Around around);

  actors::ActorRouter& router() { return router_; }
  const actors::ActorRouter& router() const { return router_; }
  /// Of the processes of this node: their ids tell whose a task is.
  actors::ProcessIds& process_ids() { return process_ids_; }
  void act(const actors::ActorRouter::Actions& actions);

  /// From a process of this node, which owns what it asks for, or from another node's agent, which says whose it is.
  Result<void> on_message(const transport::Peer& peer, NodeId from, const wire::Envelope::Reader& envelope,
                          std::vector<transport::Frame>& frames);
  Result<void> on_release(const std::string& owner, const std::string& json, NodeId from);
  /// From a process of this node: what it is answered; nullopt: such a request is not for its agent.
  std::optional<Result<nlohmann::json>> answer(const transport::Peer& peer, const std::string& verb,
                                               const std::string& text);
  void on_node_gone(NodeId node, const std::string& how);
  /// The head's answer to a request of ours.
  void on_answer(std::uint64_t request, const Result<std::string>& answer);
  /// A worker is ended for its memory: whoever sees what it prints hears of it.
  void end_for_memory(WorkerId worker, const std::string& why);

 private:
  Result<nlohmann::json> line(const nlohmann::json& body) const;
  Result<nlohmann::json> tell_owner(const nlohmann::json& body);
  void carry_out(const actors::ActorRouter::Fork& fork) { around_.workers.fork(fork); }
  void carry_out(const actors::ActorRouter::Kill& kill) { around_.workers.processes().end(kill.worker, kill.why); }
  void carry_out(const actors::ActorRouter::Send& send);
  void carry_out(const actors::ActorRouter::Forward& forward);
  void carry_out(const actors::ActorRouter::Claim& claim);
  void carry_out(const actors::ActorRouter::Unclaim& unclaim);
  void carry_out(const actors::ActorRouter::Warn& warn);
  void carry_out(const actors::ActorRouter::Forget& forget);

  const Options options_;
  const Around around_;
  actors::ActorRouter router_;
  actors::ProcessIds process_ids_;
  std::map<std::uint64_t, ActorId> claims_;  // By request to the head.
  std::size_t elsewhere_ = 0;                // When elsewhere_changed() was last told.
};

}  // namespace paceline::cluster
