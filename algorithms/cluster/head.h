#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/event_loop.h"
#include "runtime/base/ids.h"
#include "runtime/base/instant.h"
#include "runtime/base/json.h"
#include "runtime/transport/transport.h"
#include "runtime/wire/codec.h"

namespace paceline::cluster {

/// The cluster's directory: which nodes there are, which jobs run, where a job's workers go. Not on the training path:
/// agents talk to each other, and to drivers, without it. No input ends it: who asked hears what was wrong. Owned by
/// the daemon's control loop.
///
/// Requests reach it through agents (`Request.from` names the asker at that agent) and are answered the same way:
///   submit  {workers, strategy, accumulate, seed, target, ...} -> {job, nodes: [node of each rank], strategy}
///   stop    {job, reason} · close {job} · status {} · down {}
class Head {
 public:
  struct Options {
    std::string cluster;     ///< Its name, for people.
    std::int32_t nodes = 1;  ///< Expected.
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
    std::int32_t pid = 0;
    bool linked = false;  ///< To all nodes of a lower number.
  };
  struct Job {
    nlohmann::json settings;
    std::vector<NodeId> node_of;
    Instant since;
  };
  struct Asker {
    transport::Peer agent;
    std::string from;
    std::uint64_t id = 0;
  };
  struct StatusQuery {
    Asker asker;
    std::map<NodeId, nlohmann::json> answers;
    Instant deadline;
  };

  static Asker asker_of(const transport::Peer& peer, const wire::Request::Reader& request);
  void on_message(const transport::Peer& peer, const wire::Envelope::Reader& envelope, Instant now);
  void on_hello(const transport::Peer& peer, const wire::Hello::Reader& hello);
  void on_gone(const transport::Peer& peer);
  void on_request(const Asker& asker, const std::string& verb, const nlohmann::json& body, Instant now);
  Result<nlohmann::json> submit(const Asker& asker, const nlohmann::json& body, Instant now);
  Result<nlohmann::json> stop_job(const nlohmann::json& body);
  Result<nlohmann::json> close_job(const nlohmann::json& body);
  void start_status(const Asker& asker, Instant now);
  void finish_status(std::uint64_t query, Instant now);
  nlohmann::json status_of(const StatusQuery& query, Instant now) const;
  void reply(const Asker& asker, const Result<nlohmann::json>& answer);
  void broadcast_nodes();
  void send(const transport::Peer& peer, wire::Message& message);
  NodeId node_of(const transport::Peer& peer) const;

  Options options_;
  std::unique_ptr<transport::Transport> transport_;
  std::map<NodeId, Node> nodes_;
  std::map<JobId, Job> jobs_;
  std::map<std::uint64_t, StatusQuery> queries_;
  std::uint64_t next_job_ = 1;
  std::uint64_t next_query_ = 1;
  std::int64_t epoch_ = 0;
  bool down_ = false;
};

/// Request of an agent to the head, not answered: it is connected to all agents of a lower number, and they know it.
inline constexpr const char* kLinkedVerb = "linked";

/// Name under which an agent's endpoint is known: "agent/3"; and back (-1: none).
std::string agent_peer(NodeId node);
NodeId node_of_peer(const std::string& peer);

}  // namespace paceline::cluster
