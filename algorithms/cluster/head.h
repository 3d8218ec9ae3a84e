#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/cluster/cluster_state.h"
#include "algorithms/cluster/job_directory.h"
#include "algorithms/cluster/name_directory.h"
#include "algorithms/cluster/requests.h"
#include "runtime/base/event_loop.h"
#include "runtime/base/ids.h"
#include "runtime/base/instant.h"
#include "runtime/base/json.h"
#include "runtime/transport/transport.h"
#include "runtime/wire/codec.h"

namespace paceline::cluster {

/// The cluster's directory: which nodes there are, which jobs run, where a job's workers go. Not on the training path:
/// agents talk to each other, and to drivers, without it. It may end at any time: one that is started anew hears from
/// the agents what runs (job_directory.h), reads what is over (cluster_state.h), and is asked again what had no answer
/// (head_requests.h). No input ends it: who asked hears what was wrong. Owned by its process's control loop.
///
/// Requests reach it through agents (`Request.from` names the asker at that agent) and are answered the same way:
///   submit  {workers, strategy, accumulate, seed, target, ...} -> {job, nodes: [node of each rank], strategy}; the
///   same
///           request of the same asker is the same job; waits up to 5 s for nodes that are missing
///   drive   {job, heard: [[node, number]]}: its driver, under the name of before, has another agent now, and has
///           heard of each node's events up to a number -> {linked: whether that can reach the job's nodes}; once more
///           where it is not
///   stop    {job, reason} · close {job, outcome: {state, failure, updates, ...}} · down {}
///   status  {actors: "all", "detached", workers: "all", "waiting", tasks: "all", jobs_over: true: what is to be told
///   of
///           besides nodes and jobs, each may be left out; patient: whether to wait for nodes that do not answer at
///           once}
///   find_actor {name, type} -> {actor}; waits for missing nodes likewise
/// and of agents themselves: linked {epoch}, gone {peer}, cut_off {node, jobs, cause}, and of names (name_requests.h).
class Head {
 public:
  struct Options {
    std::string cluster;                                 ///< Its name, for people.
    std::int32_t nodes = 1;                              ///< Expected.
    Instant start;                                       ///< Of this process.
    std::shared_ptr<store::StateStore> store = nullptr;  ///< What the heads before it have written; nullptr: nothing.
    std::function<ClusterState::Wall()> wall = std::chrono::system_clock::now;
  };

  /// Takes a transport that already listens.
  Head(Options options, std::unique_ptr<transport::Transport> transport);

  /// Handles what has arrived.
  void poll(Instant now);
  void tick(Instant now);
  std::optional<Instant> next_deadline() const;
  int descriptor() const { return transport_->descriptor(); }

  /// All nodes have registered, and each can reach each.
  bool ready() const;
  /// Somebody asked for the cluster's end.
  bool down() const { return down_; }

 private:
  struct Node {
    transport::Peer peer;
    std::string address;
    std::int32_t cpus = 1;
    std::uint64_t memory = 0;
    std::int32_t pid = 0;
    std::int64_t since = 0;   ///< Epoch of its registration.
    std::int64_t linked = 0;  ///< It is connected to all nodes of a lower number that were there in this epoch.
  };
  struct Asker {
    transport::Peer agent;
    std::string from;
    std::uint64_t id = 0;
  };
  struct StatusQuery {
    Asker asker;
    nlohmann::json body;
    std::map<NodeId, nlohmann::json> answers;
    Instant deadline;
  };
  struct Waiting {
    Asker asker;
    std::string verb;
    nlohmann::json body;
    Instant until;
  };

  static Asker asker_of(const transport::Peer& peer, const wire::Request::Reader& request);
  void on_message(const transport::Peer& peer, const wire::Envelope::Reader& envelope, Instant now);
  void on_hello(const transport::Peer& peer, const wire::Hello::Reader& hello, Instant now);
  void on_runs(const transport::Peer& peer, const wire::OpenJob::Reader& open, Instant now);
  void on_gone(const transport::Event& gone, Instant now);
  void depend_on_nodes_of_jobs();
  void close_those_over(Instant now);
  void compare_with_state();
  void write_state(Instant now);
  void on_linked(NodeId node, std::int64_t epoch, Instant now);
  void on_request(const Asker& asker, const std::string& verb, const nlohmann::json& body, Instant now);
  void answer_when_ready(const Asker& asker, const std::string& verb, const nlohmann::json& body, Instant now);
  void answer(const Waiting& waiting, Instant now);
  // Names of actors
  void answer_of_name(const Waiting& waiting, Instant now);
  void on_names(const transport::Peer& peer, const nlohmann::json& body);
  void act(const NameDirectory::Actions& actions, Instant now);
  void carry_out(const NameDirectory::Found& found, Instant now);
  void carry_out(const NameDirectory::Refused& refused, Instant now);
  void carry_out(const NameDirectory::Confirm& confirm, Instant now);
  void carry_out(const NameDirectory::Again& again, Instant now);
  Result<nlohmann::json> submit(const Asker& asker, const nlohmann::json& body, Instant now);
  Result<nlohmann::json> answer_of(JobId job) const;
  bool is_linked(NodeId node, const JobEntry& job) const;
  void answer_drivers(Instant now);
  void answer_those(Instant now, const std::function<bool(const Waiting&)>& is_due);
  Result<nlohmann::json> move_driver(const Asker& asker, const nlohmann::json& body, Instant now);
  Result<nlohmann::json> stop_job(const nlohmann::json& body);
  void end_cluster(const Asker& asker);
  void act(const JobDirectory::Actions& actions, Instant now);
  void carry_out(const JobDirectory::Open& open, Instant now);
  void carry_out(const JobDirectory::Close& close, Instant now);
  void carry_out(const JobDirectory::Lost& lost, Instant now);
  void carry_out(const JobDirectory::GoOn& go_on, Instant now);
  void carry_out(const JobDirectory::CloseOn& close, Instant now);
  void carry_out(const JobDirectory::Driven& driven, Instant now);
  void start_status(const Asker& asker, const nlohmann::json& body, Instant now);
  void ask_for_status(const transport::Peer& peer, std::uint64_t query);
  void finish_status(std::uint64_t query, Instant now);
  nlohmann::json status_of(const StatusQuery& query, Instant now) const;
  void name_awaited(nlohmann::json& workers) const;
  void reply(const Asker& asker, const Result<nlohmann::json>& answer);
  void broadcast_nodes();
  void to_all(wire::Message& message);
  void send(const transport::Peer& peer, wire::Message& message);
  NodeId node_of(const transport::Peer& peer) const;

  Options options_;
  std::unique_ptr<transport::Transport> transport_;
  std::map<NodeId, Node> nodes_;
  ClusterState state_;
  JobDirectory jobs_;
  std::map<std::uint64_t, StatusQuery> queries_;
  std::deque<Waiting> waiting_;  ///< For nodes that are missing, or for what they say.
  NameDirectory names_;
  std::map<std::uint64_t, Waiting> of_names_;  ///< Requests that names_ has, by numbers of next_query_.
  std::uint64_t next_query_ = 1;
  std::int64_t epoch_ = 0;
  bool compared_ = false;                 ///< What the heads before it have written, with what runs.
  std::optional<Instant> writes_from_{};  ///< Earlier where all nodes are there; nullopt: it does.
  bool down_ = false;
};

}  // namespace paceline::cluster
