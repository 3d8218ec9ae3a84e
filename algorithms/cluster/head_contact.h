#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/cluster/agent_links.h"
#include "algorithms/cluster/head_requests.h"
#include "algorithms/cluster/local_peers.h"
#include "algorithms/cluster/training/node_jobs.h"
#include "runtime/base/json.h"

namespace paceline::cluster {

/// What an agent says to the head: who it is, what processes of its node ask, and what it asks itself. What has no
/// answer when a head ends is asked of the next one (HeadRequests). Owned by the agent's control loop.
class HeadContact {
 public:
  /// Who this agent is.
  struct Self {
    NodeId node;
    std::string address;
    std::int32_t cpus = 1;
    std::uint64_t memory = 0;
    std::uint64_t incarnation = 0;
  };
  /// Hears the answers to ask().
  using Answered = std::function<void(std::uint64_t request, const Result<std::string>& json)>;

  HeadContact(Self self, AgentLinks& links, LocalPeers& local, observe::Log& log, Answered answered)
      : self_(std::move(self)), links_(links), local_(local), log_(log), answered_(std::move(answered)) {}

  /// To a head that was just connected to: tells it what runs here, and asks again what has no answer.
  void introduce(const NodeJobs& jobs, const actors::ActorRouter& router, Instant now);
  void on_gone(Instant now);
  void on_back() { requests_.on_head_back(); }
  /// Since when there is none.
  std::optional<Instant> gone() const { return requests_.gone(); }

  /// For a process of this node: the reply is sent to it. `overloaded`: too many wait.
  Result<void> pass_on(HeadRequests::Request request);
  /// For the agent itself. Returns the request's number.
  Result<std::uint64_t> ask(const std::string& verb, const nlohmann::json& what);
  /// The same, where the answer is none of its business.
  void tell(const std::string& verb, const nlohmann::json& what);
  /// What is not asked again.
  void tell_once(const std::string& verb, const nlohmann::json& what);
  void tell_cut_off(NodeId node, const std::vector<JobId>& jobs, const std::string& how);
  /// To what the head has asked.
  void answer(std::uint64_t request, const nlohmann::json& what);
  void on_reply(const wire::Reply::Reader& reply);

  void tick(Instant now);
  std::optional<Instant> next_deadline() const { return requests_.next_deadline(); }

 private:
  void send(const HeadRequests::Request& request);

  const Self self_;
  AgentLinks& links_;
  LocalPeers& local_;
  observe::Log& log_;
  const Answered answered_;
  HeadRequests requests_;
  std::uint64_t next_request_ = 1;
};

}  // namespace paceline::cluster
