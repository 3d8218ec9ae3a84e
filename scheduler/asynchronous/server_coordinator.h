#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "scheduler/asynchronous/asynchronous_coordinator.h"
#include "scheduler/asynchronous/server_engine.h"

namespace paceline::scheduler {

/// Coordinator of an asynchronous parameter server on one agent. The model is kept by the agent of node 0, which adds
/// each step to it, scaled, as it comes, and gives the result to whom the bound lets go on:
///
///   worker publishes x' -> node 0:  server += scale (x' - taken);  worker gets the server's model
///   on another node        push: x' - taken ->  <- pull: the server's model
class ServerCoordinator final : public AsynchronousCoordinator {
 public:
  ServerCoordinator(Workplace& work, ServerEngine::Options options);

  std::optional<Waiting> waiting() const override;

 private:
  void step(const Decision& d) override;
  void on_ends_apart() override;
  void look(Instant now) override;
  std::optional<Instant> core_deadline() const override;
  void on_start(Rank rank, Instant now) override;
  void on_step(Rank rank, Worker& w, Instant now) override;
  void on_exchange(NodeId from, const Message& message, std::shared_ptr<Bytes> bulk, Instant now) override;
  void on_strategy_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                           Instant now) override;
  std::vector<std::shared_ptr<Bytes>> own_models() const override;
  void leave(Rank rank, Instant now) override;
  void on_node_lost(NodeId node, Instant now) override;
  bool is_awaited(Rank rank) const override;

  bool is_server() const { return work_.job.self.value == 0; }
  void on_push(Rank rank, Version t, std::shared_ptr<Bytes> step, Instant now);
  void on_rank_gone(Rank rank, Instant now);
  /// Who waits no longer for the bound gets the model as it is.
  void let_pull(std::vector<Rank> served);
  /// What `inputs` add up to is the server's new model, which is given to `served`. `pushed`: by a push of this rank.
  void serve(std::function<collective::Reduction()> inputs, std::vector<Rank> served, std::optional<Rank> pushed = {});
  void take(Rank rank, std::shared_ptr<Bytes> model);

  ServerEngine engine_;
  bool has_start_ = false;           ///< Node 0 has it, or was sent it.
  std::shared_ptr<Bytes> server_;    ///< Node 0.
  std::set<Rank> gone_;              ///< Node 0: of all nodes.
  std::map<Rank, Version> pushed_;   ///< Node 0: last iteration.
  std::map<Rank, Instant> waiting_;  ///< Node 0: for the bound, since when.
  std::set<Rank> awaited_;           ///< Local workers that node 0 says are waited for.
  Instant complained_{};
};

}  // namespace paceline::scheduler
