#pragma once

#include <optional>
#include <vector>

#include "scheduler/mixing/model_mixing.h"

namespace paceline::scheduler {

/// Coordinator of strategies whose workers mix their models with their neighbours' after every local step.
///
/// Under push-sum a graph may run dry when workers leave: whose weight only falls steps ever further, since z = x / w,
/// and its model would grow beyond all numbers. Those that are left get a graph of their own then. Who comes back is in
/// the next graph, with a weight of 1; else in the one that there was.
class MixCoordinator final : public Coordinator, private OwnPace::Strategy, private Neighbours::Strategy {
 public:
  using Options = ModelMixing::Options;

  MixCoordinator(Workplace& work, Options options);

  Pace& pace() override { return pace_; }
  std::optional<Waiting> waiting() const override { return neighbours_.waiting(); }

 private:
  void on_peer_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                       Instant now) override {
    neighbours_.on_message(from, message, std::move(bulk), now);
  }
  void pass_on(NodeId lost, NodeId to) override { neighbours_.pass_on(lost, to); }
  void look(Instant now) override { neighbours_.look(now); }
  std::optional<Instant> core_deadline() const override { return neighbours_.core_deadline(); }
  void step(const Decision& d) override;

  ModelMeans::Part model_of(Rank rank) override { return mixing_.model_of(rank); }
  bool is_shared(Rank rank, Version own) const override;
  void on_last(Rank rank, Instant now) override;
  void leave(Rank rank, Instant now) override { neighbours_.leave(rank, now); }
  void on_node_lost(NodeId node, Instant now) override { neighbours_.on_node_lost(node, now); }
  std::vector<Rank> left() const override { return neighbours_.engine().left(); }
  Version last_given(Version frozen) const override;
  void on_remade(Version last, const std::vector<Rank>& members, const std::vector<Rank>& join, Instant now) override;
  void on_joined(Rank rank, Version last, Instant now) override { mixing_.on_start(rank, last, now); }
  void on_not_joined(Rank rank, Version last, Instant now) override { neighbours_.on_not_joined(rank, last, now); }

  void carry_out(const MixEngine::Mix& mix) override { mixing_.carry_out(mix); }
  std::size_t contribution_bytes(Version) const override { return work_.windows.bytes(); }
  void after_gone() override;

  std::optional<Rank> running_dry() const;
  bool may_remake() const;

  const Options options_;
  OwnPace pace_;
  Neighbours neighbours_;
  ModelMixing mixing_;
};

}  // namespace paceline::scheduler
