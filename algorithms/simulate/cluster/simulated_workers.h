#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/cluster/workers.h"
#include "runtime/base/clock.h"
#include "runtime/transport/sim/sim_network.h"

namespace paceline::simulate {

/// Of an actor that is there: constructed, in a process that lives.
struct LivingActor {
  ActorId actor;
  std::string claimed;  ///< Name; empty: none.
};
/// How the training of a worker came to its end.
struct Trained {
  std::uint64_t job = 0;
  std::int32_t rank = 0;
  std::string trouble;  ///< Empty: none.
  std::int64_t updates = 0;
  std::vector<double> model;
  std::map<std::int64_t, double> averages;  ///< Gradients that it stepped with, by update.
  bool has_left = false;                    ///< As it was asked to.
  /// With which it began legs of the job that it was there for before, by their first updates.
  std::map<std::int64_t, std::vector<double>> began_with{};
};

/// The workers of one simulated node: actors that answer each call some time later, in order, or train.
class SimulatedWorkers final : public cluster::Workers {
 public:
  struct Node {
    NodeId id;
    transport::SimNetwork& network;  ///< Of the node's processes.
    std::string address;             ///< The agent's, there.
    const Clock& clock;
    Duration call_takes;
    std::function<void(const std::string&)> find;  ///< Something is wrong with what a worker was told.
    std::function<void(Trained)> trained;
  };

  SimulatedWorkers(Node node, Listener listener, std::function<void()> on_gone);
  ~SimulatedWorkers() override;

  void fork(const actors::ActorRouter::Fork& fork) override;
  void on_connected(WorkerId, pid_t) override {}
  void end(WorkerId worker, const std::string& reason) override { ending_.emplace_back(worker, reason); }
  void answer(WorkerId worker, std::uint64_t request, const Result<std::string>& body,
              const std::vector<process::BorrowedFd>& fds) override;
  char state(WorkerId worker) const override;
  pid_t pid(WorkerId worker) const override;
  std::string log(WorkerId) const override { return {}; }
  std::size_t size() const override { return workers_.size(); }
  std::vector<MemorySource> memory_sources() const override { return {}; }

  /// SIGKILL of the `which`-th in turn. False: there is none.
  bool kill(std::uint64_t which);
  /// SIGSTOP, SIGCONT.
  bool freeze(std::uint64_t which, bool frozen);
  void thaw_all();
  /// Whether anything happened.
  bool step();
  std::optional<Instant> next_deadline() const;
  void add_living(std::vector<LivingActor>& living) const;

 private:
  struct Worker;
  Worker* find(std::uint64_t which);
  bool end_some();
  bool step(Worker& worker);
  void hear(Worker& worker, std::vector<transport::Frame> frames);
  void on_call(Worker& worker, actors::Call call);
  void begin_training(Worker& worker, actors::Call call);
  void end_training(Worker& worker);

  Node node_;
  Listener listener_;
  std::function<void()> on_gone_;
  std::map<WorkerId, std::unique_ptr<Worker>> workers_;
  std::vector<std::pair<WorkerId, std::string>> ending_;
};

}  // namespace paceline::simulate
