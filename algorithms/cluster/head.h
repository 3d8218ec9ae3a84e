#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "algorithms/cluster/head_jobs.h"
#include "algorithms/cluster/head_links.h"
#include "algorithms/cluster/head_names.h"
#include "algorithms/cluster/requests.h"
#include "algorithms/cluster/status_queries.h"
#include "runtime/base/instant.h"
#include "runtime/transport/transport.h"
#include "runtime/wire/codec.h"

namespace paceline::cluster {

/// The cluster's directory: which nodes there are, which jobs run, where a job's workers go. Not on the training path:
/// agents talk to each other, and to drivers, without it. It may end at any time: one that is started anew hears from
/// the agents what runs (job_directory.h), reads what is over (cluster_state.h), and is asked again what had no answer
/// (head_requests.h). No input ends it: who asked hears what was wrong. Owned by its process's control loop.
///
/// Requests reach it through agents (`Request.from` names the asker at that agent) and are answered the same way:
///   submit  {workers, strategy, accumulate, seed, target, ...} -> {job, nodes: [node of each rank], strategy};
///           the same request of the same asker is the same job; waits up to 5 s for nodes that are missing
///   drive   {job, heard: [[node, number]]}: its driver, under the name of before, has another agent now, and has
///           heard of each node's events up to a number -> {linked: whether that can reach the job's nodes}; once more
///           where it is not
///   stop    {job, reason} · close {job, outcome: {state, failure, updates, ...}} · down {}
///   scale   {job, workers} -> {job, workers, least, most}: its driver hears of it
///   drain   {node, whatever_stays: since it ends} or {worker, job: where there are several} -> {node} or {worker}, and
///           {jobs}: their drivers hear of it
///   let_go  {job, ranks}: their agents hear of it
///   move_places {job, places: [[rank, node]]}: they are these nodes' from the job's next leg on; the same once more is
///           the same move -> {job, leg, nodes: [node of each rank], lost: [nodes]}
///   set     {job, strategy} -> {job, strategy, before}: its agents hear of it
///   status  {actors: "all", "detached", workers: "all", "waiting", tasks: "all", jobs_over: true:
///           what is to be told of besides nodes and jobs, each may be left out;
///           patient: whether to wait for nodes that do not answer at once}
///   find_actor {name, type} -> {actor}; waits for missing nodes likewise
/// and of agents themselves: linked {epoch}, gone {peer}, cut_off {node, jobs, cause}, left {job}, and of names
/// (name_requests.h).
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
  int descriptor() const { return links_.transport().descriptor(); }

  /// All nodes have registered, and each can reach each.
  bool ready() const { return links_.ready(); }
  /// Somebody asked for the cluster's end.
  bool down() const { return down_; }

 private:
  using Asker = HeadLinks::Asker;
  struct Waiting {
    HeadNames::Request request;
    Instant until;
  };

  static Asker asker_of(const transport::Peer& peer, const wire::Request::Reader& request);
  void on_message(const transport::Peer& peer, const wire::Envelope::Reader& envelope, Instant now);
  void on_hello(const transport::Peer& peer, const wire::Hello::Reader& hello, Instant now);
  void on_gone(const transport::Event& gone, Instant now);
  void on_request(const Asker& asker, const std::string& verb, const nlohmann::json& body, Instant now);
  void answer_when_ready(const HeadNames::Request& request, Instant now);
  void answer(const HeadNames::Request& request, Instant now);
  void answer_drivers(Instant now);
  void answer_those(Instant now, const std::function<bool(const Waiting&)>& is_due);
  void end_cluster(const Asker& asker);
  void depend_on_nodes_in_use();

  HeadLinks links_;
  HeadJobs jobs_;
  HeadNames names_;
  StatusQueries status_;
  std::deque<Waiting> waiting_;     ///< For nodes that are missing, or for what they say.
  std::uint64_t next_request_ = 1;  ///< To agents.
  bool down_ = false;
};

}  // namespace paceline::cluster
