#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "runtime/base/ids.h"
#include "runtime/base/json.h"
#include "runtime/transport/transport.h"
#include "runtime/wire/codec.h"

namespace paceline::cluster {

/// The head's links to agents: which nodes are registered, and whether each can reach each. Owned by the head's control
/// loop.
class HeadLinks {
 public:
  struct Node {
    transport::Peer peer;
    std::string address;
    std::int32_t cpus = 1;
    std::uint64_t memory = 0;
    std::int32_t pid = 0;
    std::int64_t since = 0;   ///< Epoch of its registration.
    std::int64_t linked = 0;  ///< It is connected to all nodes of a lower number that were there in this epoch.
  };
  /// Who is to be answered: a process of the agent's, or itself.
  struct Asker {
    transport::Peer agent;
    std::string from;
    std::uint64_t id = 0;
  };

  /// `expected`: so many nodes the cluster has, until one of a higher number registers.
  HeadLinks(std::unique_ptr<transport::Transport> transport, std::int32_t expected)
      : transport_(std::move(transport)), expected_(expected) {}

  transport::Transport& transport() { return *transport_; }
  const transport::Transport& transport() const { return *transport_; }

  /// Begins an epoch.
  void on_hello(NodeId node, const transport::Peer& peer, const wire::Hello::Reader& hello);
  /// False: it is not registered.
  bool on_linked(NodeId node, std::int64_t epoch);
  /// False: it was not.
  bool erase(NodeId node) { return nodes_.erase(node) > 0; }
  /// All hear which nodes there are.
  void begin_epoch();

  const std::map<NodeId, Node>& nodes() const { return nodes_; }
  std::int32_t expected() const { return expected_; }
  bool are_all_here() const { return static_cast<std::int32_t>(nodes_.size()) >= expected_; }
  /// All nodes have registered, and each can reach each.
  bool ready() const;
  /// Whether the agents of these two can reach each other.
  bool are_linked(NodeId one, NodeId other) const;

  /// One that cannot be reached is gone or going: it registers anew when it comes back.
  void send(const transport::Peer& peer, wire::Message& message);
  void to_all(wire::Message& message);
  void reply(const Asker& asker, const Result<nlohmann::json>& answer);
  /// That one of these is silent is to be noticed, of the others not.
  void depend_on(const std::set<NodeId>& needed);

 private:
  std::unique_ptr<transport::Transport> transport_;
  std::int32_t expected_;
  std::map<NodeId, Node> nodes_;
  std::int64_t epoch_ = 0;
};

}  // namespace paceline::cluster
