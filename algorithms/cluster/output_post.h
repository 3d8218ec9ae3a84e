#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/output_message.h"
#include "algorithms/cluster/worker_output.h"

namespace paceline::cluster {

/// The agent's part of showing what workers print: sends what WorkerOutput reads here to each driver's agent, passes on
/// to the drivers of this node what is for them, and their words back. Owned by the agent's control loop.
class OutputPost {
 public:
  struct Ways {
    /// To a driver of this node; false: it is not there.
    std::function<bool(const std::string& driver, actors::Frames)> to_driver;
    std::function<void(NodeId, actors::Frames)> to_node;
    /// Other nodes whose agents can be reached.
    std::function<std::set<NodeId>()> others;
  };

  OutputPost(NodeId self, EventLoop& loop, observe::Log& log, Ways ways);

  void watch(WorkerOutput::Source source) { output_.watch(std::move(source)); }
  void on_worker_ended(WorkerId worker) { output_.on_ended(worker); }
  /// A line of this agent's own; lost where the driver has ended.
  void say(const WorkerOutput::Reader& reader, const std::string& line);
  /// Of another node's workers.
  void on_output(NodeId from, actors::Output output);
  /// From a driver of this node, or from the agent that speaks for one.
  void on_wanted(const std::string& driver, const actors::OutputWanted& wanted);
  void on_wanted(NodeId from, const actors::OutputWanted& wanted);
  void on_peer_gone(const std::string& peer);
  /// What is for its drivers waits for a while: they may come to another node.
  void on_node_gone(NodeId node);
  void on_driver_moved(const std::string& driver, NodeId to) { output_.move(driver, to); }

  void tick(Instant now);
  std::optional<Instant> next_deadline() const;

 private:
  struct Driver {
    std::set<NodeId> elsewhere;  ///< Other nodes that have heard of it.
    std::set<NodeId> awaited;    ///< Nodes that have not sent all that it has asked for.
  };

  void send(const WorkerOutput::Reader& reader, WorkerOutput::Batch batch);
  void deliver(NodeId from, actors::Output output);

  const NodeId self_;
  const Ways ways_;
  WorkerOutput output_;
  std::map<std::string, Driver> drivers_;   // Of this node, those that wanted something or were sent something.
  std::vector<WorkerOutput::Reader> gone_;  // Until the next tick: what goes may be noticed in the middle of one.
  std::vector<NodeId> gone_nodes_;
};

}  // namespace paceline::cluster
