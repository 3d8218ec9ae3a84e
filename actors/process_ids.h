#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "runtime/base/ids.h"

namespace paceline::actors {

/// A process that makes calls and actors, unique in the cluster while it is connected: its node in the upper 10 of 30
/// bits, a number of its agent's in the others. 0: none.
using ProcessId = std::uint32_t;

/// The numbers that an agent gives processes are below: far more than it has connections.
inline constexpr std::uint32_t kProcessesMax = 1 << 20;
inline ProcessId process_id(NodeId node, std::uint32_t number) {
  return static_cast<std::uint32_t>(node.value) * kProcessesMax + number;
}

/// The `count`-th call or task that a process makes (of the first 2^33). The top bit is clear: ids of
/// compute and averaging tasks have it set.
inline TaskId task_id(ProcessId process, std::uint64_t count) {
  return TaskId((std::uint64_t{process} << 33) | (count & ((std::uint64_t{1} << 33) - 1)));
}

/// The process that makes it, and the node of its agent.
inline ProcessId process_of(TaskId task) { return static_cast<ProcessId>(task.value >> 33); }
inline NodeId node_of(TaskId task) { return NodeId(static_cast<std::int32_t>(process_of(task) / kProcessesMax)); }

/// Cluster-wide: where an actor lives is part of its id.
inline constexpr std::int32_t kNodesMax = 1024;
/// The `count`-th actor that a process makes (of the first 2^24), on `node`, which is one of kNodesMax.
inline ActorId actor_id(NodeId node, ProcessId process, std::uint32_t count) {
  return ActorId((static_cast<std::uint64_t>(node.value) << 54) | (std::uint64_t{process} << 24) |
                 (count & ((std::uint32_t{1} << 24) - 1)));
}
/// The process that has made the actor.
inline ProcessId process_of(ActorId actor) {
  return static_cast<ProcessId>((actor.value >> 24) & ((std::uint64_t{1} << 30) - 1));
}
/// The `count`-th worker of a node.
inline WorkerId worker_id(NodeId node, std::uint32_t count) {
  return WorkerId((static_cast<std::uint64_t>(static_cast<std::uint32_t>(node.value)) << 32) | count);
}
inline NodeId node_of(WorkerId worker) { return NodeId(static_cast<std::int32_t>(worker.value >> 32)); }
/// For people.
inline std::uint32_t number_on_node(WorkerId worker) { return static_cast<std::uint32_t>(worker.value); }
/// A worker's name as a peer, and the worker that a peer of this name is; nullopt: none.
std::string worker_peer(WorkerId worker);
std::optional<WorkerId> worker_named(std::string_view peer);

inline NodeId node_of(ActorId actor) { return NodeId(static_cast<std::int32_t>(actor.value >> 54)); }

/// Gives the processes that are connected to one agent their ids: what one has had, another gets after 2^20 others
/// only, so that late answers to calls of a dead process are nobody's. Owned by the agent's control loop.
class ProcessIds {
 public:
  /// `starts`: of agents of this node before this one; what theirs have had is given again after 16 others only.
  explicit ProcessIds(NodeId node, std::uint32_t starts = 0) : node_(node), last_(starts % 16 << 16) {}

  /// A process's id: the same while it is connected.
  ProcessId join(const std::string& peer);
  void leave(const std::string& peer);
  /// Who has this id; nullopt: nobody who is connected.
  std::optional<std::string> peer_of(ProcessId process) const;

 private:
  NodeId node_;
  std::uint32_t last_;
  std::map<std::string, std::uint32_t> numbers_;
  std::set<std::uint32_t> used_;
};

}  // namespace paceline::actors
