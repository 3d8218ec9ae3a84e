#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/asynchronous/asynchronous_coordinator.h"
#include "scheduler/asynchronous/pair_engine.h"

namespace paceline::scheduler {

/// Coordinator of the pair engine on one agent. The agent keeps each of its workers' models, which others change while
/// the worker computes; the worker is given a copy after its step was added.
class PairCoordinator final : public AsynchronousCoordinator {
 public:
  /// Whom the worker meets after this iteration.
  using Partner = std::function<std::optional<Rank>(Rank, Version)>;

  PairCoordinator(Workplace& work, Partner partner);

 private:
  void on_start(Rank rank, Instant now) override;
  void step(const Decision& d) override;
  void on_step(Rank rank, Worker& w, Instant now) override;
  void on_exchange(NodeId from, const Message& message, std::shared_ptr<Bytes> bulk, Instant now) override;
  std::vector<std::shared_ptr<Bytes>> own_models() const override;
  bool is_settled() const override { return engine_.idle(); }
  bool is_awaited(Rank rank) const override;
  void leave(Rank rank, Instant now) override;
  void on_node_lost(NodeId node, Instant now) override;

  void act(const PairEngine::Actions& actions);
  void carry_out(const PairEngine::Send& send);
  void carry_out(const PairEngine::Average& average);
  void carry_out(const PairEngine::Step& step);

  /// What others have done to a worker's model, all in all and when the worker was given it.
  struct Changes {
    std::int64_t all = 0, when_taken = 0;
  };

  Partner partner_;
  PairEngine engine_;
  std::map<Rank, std::shared_ptr<Bytes>> models_;    ///< Of local workers.
  std::map<Rank, std::shared_ptr<Bytes>> visitors_;  ///< Initiator -> the lower model, here from another node.
  std::map<Rank, Changes> changes_;
  PairEngine::Meeting averaged_{};  ///< The last one here.
};

}  // namespace paceline::scheduler
