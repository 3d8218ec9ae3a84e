#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/cluster/agent.h"
#include "algorithms/cluster/head.h"
#include "algorithms/simulate/cluster/simulated_driver.h"
#include "algorithms/simulate/cluster/simulated_workers.h"
#include "runtime/base/event_loop.h"
#include "runtime/store/state_store.h"
#include "runtime/transport/sim/sim_network.h"

namespace paceline::simulate {

/// A whole cluster in one process and thread, under virtual time: the head and the agents as they are in processes,
/// over links, on a simulated network; workers and drivers that speak their protocol. The supervisor starts a head or
/// an agent again some time after it was killed. What happens, and when, follows from the seed and the calls alone.
class SimulatedCluster {
 public:
  struct Options {
    std::int32_t nodes = 3;
    std::uint64_t seed = 1;
    Duration start_takes = std::chrono::milliseconds(60);  ///< Until a process that was killed is there again.
    Duration call_takes = std::chrono::milliseconds(2);
    std::size_t messages_a_turn = 256;  ///< Of an agent.
    double refuse = 0;                  ///< Connections between nodes that are refused at first, of one.
  };

  explicit SimulatedCluster(Options options);
  ~SimulatedCluster();

  /// Everything that happens for so long.
  void run(Duration time);
  Instant now() const { return network_.now(); }

  /// One more, of the next number.
  void add_node();

  // Faults
  void kill_head();
  void kill_agent(NodeId node);
  /// A worker of this node, the `which`-th in turn; false: it has none.
  bool kill_worker(NodeId node, std::uint64_t which);
  bool freeze_worker(NodeId node, std::uint64_t which, bool frozen);
  /// SIGSTOP of an agent, and of all on its node.
  void freeze(NodeId node, bool frozen);
  void freeze_head(bool frozen);
  /// Nothing that the head writes down can be written.
  void fill_disk(bool full) { store_->fill(full); }
  void partition(NodeId a, NodeId b, bool apart);
  /// What `from` sends to `to` is lost; the other way it arrives.
  void cut_one_way(NodeId from, NodeId to, bool cut);

  /// Everything that is frozen or kept apart goes on, and the disk has room. Who was killed comes back by itself.
  void heal();

  /// Of that node, if its agent lives.
  SimulatedDriver* start_driver(NodeId node);
  const std::vector<std::unique_ptr<SimulatedDriver>>& drivers() const { return drivers_; }

  bool ready() const { return head_.process && head_.process->ready(); }
  bool lives(NodeId node) const { return node_of(node).agent != nullptr; }
  std::vector<LivingActor> living() const;
  /// Of all messages so far: the same calls give the same, bit for bit.
  transport::SimNetwork::Counts counts() const { return network_.counts(); }
  /// How workers have come out of their jobs.
  const std::vector<Trained>& trained() const { return trained_; }
  /// What was wrong with what workers were told: a call twice, or out of order.
  const std::vector<std::string>& findings() const { return findings_; }

 private:
  transport::LinkFaults faults() const;
  struct Node {
    NodeId id;
    std::unique_ptr<transport::SimNetwork> local;  ///< Of its processes.
    std::unique_ptr<EventLoop> loop;
    std::unique_ptr<cluster::Agent> agent;
    SimulatedWorkers* workers = nullptr;  ///< The agent's.
    std::uint32_t starts = 0;
    std::optional<Instant> starts_at{};
    bool frozen = false;
  };
  struct TheHead {
    std::unique_ptr<cluster::Head> process;
    std::optional<Instant> starts_at{};
    bool frozen = false;
  };

  std::unique_ptr<transport::Transport> link_endpoint(const std::string& name);
  void start_head();
  void start_agent(Node& node);
  Node& node_of(NodeId node) { return nodes_.at(static_cast<std::size_t>(node.value)); }
  const Node& node_of(NodeId node) const { return nodes_.at(static_cast<std::size_t>(node.value)); }
  bool step();
  Instant next_event(Instant until) const;
  void advance(Instant to);

  Options options_;
  transport::SimNetwork network_;  ///< Between nodes; its time is everybody's.
  std::shared_ptr<store::MemoryStore> store_ = std::make_shared<store::MemoryStore>();  ///< Of all heads.
  TheHead head_;
  std::deque<Node> nodes_;
  std::vector<std::unique_ptr<SimulatedDriver>> drivers_;
  std::vector<Trained> trained_;
  std::uint64_t incarnations_ = 0;
  std::uint32_t next_driver_ = 1;
  std::vector<std::string> findings_;
};

}  // namespace paceline::simulate
