#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/asynchronous/asynchronous_workers.h"
#include "scheduler/asynchronous/pair_engine.h"

namespace paceline::scheduler {

/// Coordinator of the pair engine on one agent. The agent keeps each of its workers' models, which others change while
/// the worker computes; the worker is given a copy after its step was added.
class PairCoordinator final : public Coordinator, private OwnPace::Strategy, private AsynchronousWorkers::Strategy {
 public:
  /// Whom the worker meets after this iteration.
  using Partner = std::function<std::optional<Rank>(Rank, Version)>;

  PairCoordinator(Workplace& work, Partner partner);

  Pace& pace() override { return pace_; }

 private:
  using Bytes = AsynchronousWorkers::Bytes;
  using Message = AsynchronousWorkers::Message;
  using Worker = AsynchronousWorkers::Worker;

  void on_peer_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                       Instant now) override {
    async_.on_message(from, message, std::move(bulk), now);
  }
  void pass_on(NodeId lost, NodeId to) override { pace_.pass_on(lost, to); }
  void look(Instant now) override { async_.look(now); }
  std::optional<Instant> core_deadline() const override { return async_.core_deadline(); }
  void step(const Decision& d) override;

  void on_last(Rank rank, Instant) override { async_.on_last(rank); }
  bool is_free(Rank rank) const override { return engine_.is_free(rank); }
  void leave(Rank rank, Instant now) override;
  void on_node_lost(NodeId node, Instant now) override;

  void on_back(Rank, Version) override {}
  void on_start(Rank rank, Instant now) override;
  void on_step(Rank rank, Worker& w, Instant now) override;
  void on_exchange(NodeId from, const Message& message, std::shared_ptr<Bytes> bulk, Instant now) override;
  std::vector<std::shared_ptr<Bytes>> own_models() const override;
  Contents own_contents() const override;
  bool is_settled() const override { return engine_.idle(); }
  bool holds_others_up(Rank rank) const override;

  void act(const PairEngine::Actions& actions);
  void carry_out(const PairEngine::Send& send);
  void carry_out(const PairEngine::Average& average);
  void carry_out(const PairEngine::Step& step);
  void share_contents(const PairEngine::Meeting& meeting);

  /// What others have done to a worker's model, all in all and when the worker was given it.
  struct Changes {
    std::int64_t all = 0, when_taken = 0;
  };

  Partner partner_;
  OwnPace pace_;
  AsynchronousWorkers async_;
  PairEngine engine_;
  std::map<Rank, std::shared_ptr<Bytes>> models_;  ///< Of local workers.
  struct Visitor {
    std::shared_ptr<Bytes> model;
    Contents contents;
  };
  std::map<Rank, Visitor> visitors_;  ///< Initiator -> the lower model, here from another node.
  std::map<Rank, Changes> changes_;
  PairEngine::Meeting averaged_{};  ///< The last one here.
};

}  // namespace paceline::scheduler
