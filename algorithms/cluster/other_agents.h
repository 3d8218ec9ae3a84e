#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "actors/router/actor_router.h"
#include "runtime/base/ids.h"

namespace paceline::cluster {

/// The other agents of a cluster, as one of them knows them: where they are, and whether each reaches the other. Sans
/// I/O.
///
///   head: nodes -> Connect to those of a lower number (the others connect to this one) -> their welcome -> linked
///   lost -> Connect again at the same address: one that was frozen goes on some day. Until it says something, what it
///   is asked fails at once.
class OtherAgents {
 public:
  /// A connection is to be made, anew if there is one, and to begin with a hello.
  struct Connect {
    NodeId node;
    std::string address;

    bool operator==(const Connect&) const = default;
  };
  /// To the head: this one is connected to all agents of a lower number in this epoch, and they know it.
  struct TellLinked {
    std::int64_t epoch = 0;

    bool operator==(const TellLinked&) const = default;
  };
  /// Its workers can be asked for. It may be said again.
  struct Reachable {
    NodeId node;
    actors::Capacity has;
  };
  using Action = std::variant<Connect, TellLinked, Reachable>;
  using Actions = std::vector<Action>;

  /// An agent as the head knows it.
  struct Known {
    NodeId node;
    std::string address;
    actors::Capacity has;
  };

  explicit OtherAgents(NodeId self) : self_(self), numbers_(self.value + 1) {}

  /// The head's list, this one included.
  Actions on_nodes(std::int64_t epoch, const std::vector<Known>& nodes);
  /// Its numbers of epochs are no more.
  void on_head_gone() { epoch_ = -1; }
  /// It has sent something.
  void heard(NodeId node) {
    cut_off_.erase(node);
    gone_.erase(node);
  }
  Actions on_hello(NodeId node);
  Actions on_welcome(NodeId node);
  Actions on_gone(NodeId node, const std::string& cause);

  /// Why nothing can be sent to it until it says something; nullopt: it can.
  std::optional<std::string> cut_off(NodeId node) const;
  /// It was there, and has not said anything since it was lost.
  bool is_gone(NodeId node) const { return gone_.contains(node); }
  /// Those that have said hello or welcome.
  const std::set<NodeId>& reachable() const { return reachable_; }
  /// All nodes that the head knows, this one included.
  const std::vector<NodeId>& known() const { return known_; }
  /// One more than the highest number of all that the head has ever told of, and its own.
  std::int32_t numbers() const { return numbers_; }

 private:
  void connect(NodeId node, const std::string& address, Actions& out);
  void tell_linked(Actions& out) const;

  NodeId self_;
  std::int64_t epoch_ = -1;  ///< Of known_; below 0: of no head.
  std::vector<NodeId> known_;
  std::int32_t numbers_;
  std::map<NodeId, std::string> addresses_;  ///< Of those that it has connected to.
  std::map<NodeId, actors::Capacity> has_;
  std::set<NodeId> reachable_;
  std::set<NodeId> gone_;
  std::set<NodeId> linked_;  ///< It has connected to them, and they know it.
  std::map<NodeId, std::string> cut_off_;
};

}  // namespace paceline::cluster
