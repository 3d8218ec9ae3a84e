#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/mixing/batch_engine.h"
#include "scheduler/mixing/model_mixing.h"

namespace paceline::scheduler {

/// Coordinator of the batch engine: one that mixes, whose workers' steps are of batches that the first of them ends
/// (nonblocking over neighbours). A worker reports when its batch is over, and steps and publishes once it is told what
/// its sum weighs; its agent stands in for a worker that did nothing of an update, or does not answer.
///
/// In a replay may_publish tells the workers how many mini-batches counted, and nobody is told of a signal.
class BatchCoordinator final : public Coordinator, private OwnPace::Strategy, private Neighbours::Strategy {
 public:
  using Options = ModelMixing::Options;

  BatchCoordinator(Workplace& work, const Options& options, BatchEngine::Options batches);

  Pace& pace() override { return pace_; }
  std::optional<Waiting> waiting() const override { return neighbours_.waiting(); }

  void on_batch(Rank rank, Version t, std::int32_t bodies, Duration each, Instant now) override;

 private:
  void on_peer_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                       Instant now) override;
  void pass_on(NodeId lost, NodeId to) override;
  void look(Instant now) override;
  std::optional<Instant> core_deadline() const override;
  void step(const Decision& d) override;

  ModelMeans::Part model_of(Rank rank) override { return mixing_.model_of(rank); }
  bool lets_go(Rank rank, Version own, Instant now) override;
  void leave(Rank rank, Instant now) override;
  void on_node_lost(NodeId node, Instant now) override { neighbours_.on_node_lost(node, now); }

  void carry_out(const MixEngine::Mix& mix) override { mixing_.carry_out(mix); }
  std::size_t contribution_bytes(Version) const override { return work_.windows.bytes(); }
  void on_gone_elsewhere(Rank rank, Instant now) override { act(batches_.on_gone(rank), now); }

  bool has_done_nothing(Rank rank, Version v);
  void pass_over(Instant now);
  void reported(Rank rank, Version t, std::int32_t bodies, Instant now);
  void settle(Rank rank, Version v, std::int32_t bodies, Instant now);
  void send_batch(NodeId to, Version v, std::int64_t bodies, NodeId of);
  void end_batches_of(Member& member, Version v);
  void act(const BatchEngine::Actions& actions, Instant now);
  void carry_out(const BatchEngine::Signal& signal, Instant now);
  void carry_out(const BatchEngine::Tell& tell, Instant now);
  void carry_out(const BatchEngine::Step& step, Instant now);
  void carry_out(const BatchEngine::StandIn& stands_in, Instant now);

  OwnPace pace_;
  Neighbours neighbours_;
  ModelMixing mixing_;
  BatchEngine batches_;
  std::int32_t most_;                                          ///< N
  std::set<Rank> waiting_;                                     ///< Workers that wait for a verdict.
  std::map<std::pair<NodeId, Version>, std::int64_t> counts_;  ///< Other agents', not told yet.
  std::map<Version, std::map<NodeId, std::int64_t>> told_;     ///< The same, told, while somebody may lack them.
};

}  // namespace paceline::scheduler
