#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "scheduler/mixing/neighbours.h"
#include "scheduler/mixing/worker_averagings.h"

namespace paceline::scheduler {

/// Coordinator of strategies whose workers exchange at some iterations only, and make an outer step with what they get.
/// Exchange r, version r of the plan, is sent after iteration (r + 1) every - 1 and taken `delay` iterations later; at
/// all others workers neither publish nor wait. With x what a worker sends, s slow weights, b outer buffer, mean over
/// the row:
///
///   parts  part r mod F of all models; s and b are the same everywhere, kept once a node
///          d = s - mean x             b = momentum b + d
///          s -= rate (d + momentum b)                                             x = keeps x + (1 - keeps) s
///
///   whole  models, each worker with an s and b of its own, which it sends, too
///          b = momentum b + rate mean(x - s) + pull (mean s - s)     s += b       x = s
///
/// Numbers without an outer step: x = keeps x + (1 - keeps) mean x. The agent keeps s and b, and writes the result into
/// the very buffer that was published.
class ExchangeCoordinator final : public Coordinator, private OwnPace::Strategy, private Neighbours::Strategy {
 public:
  struct Options {
    std::shared_ptr<const MixPlan> plan;
    std::int64_t every = 1;
    std::int32_t parts = 0;  ///< F; 0: whole models.
    std::int64_t delay = 0;  ///< Below `every`.
    double keeps = 0;
    double momentum = 0;
    double rate = 1;
    double pull = 0;
    std::uint64_t outer_elements = 0;  ///< The outer step is made with so many of the first.
  };

  ExchangeCoordinator(Workplace& work, Options options);

  Pace& pace() override { return pace_; }
  std::optional<Waiting> waiting() const override { return neighbours_.waiting(); }

 private:
  using Bytes = ModelMeans::Bytes;
  using Term = Neighbours::Term;
  using Terms = Neighbours::Terms;
  struct Slow {
    Bytes weights, buffer;
  };
  struct Worker {
    Neighbours::Turn& turn;
    std::shared_ptr<Slow> slow;
  };
  /// Numbers of a model: [from, to).
  struct Range {
    std::size_t from, to;
  };

  void on_peer_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                       Instant now) override {
    neighbours_.on_message(from, message, std::move(bulk), now);
  }
  void pass_on(NodeId lost, NodeId to) override { neighbours_.pass_on(lost, to); }
  void look(Instant now) override { neighbours_.look(now); }
  std::optional<Instant> core_deadline() const override { return neighbours_.core_deadline(); }
  void step(const Decision& d) override;

  ModelMeans::Part model_of(Rank rank) override;
  Version next_publication(Version v) const override;
  bool averages(Version v) const override { return sent_after(v.value - options_.delay).has_value(); }
  void leave(Rank rank, Instant now) override { neighbours_.leave(rank, now); }
  void on_node_lost(NodeId node, Instant now) override { neighbours_.on_node_lost(node, now); }

  void carry_out(const MixEngine::Mix& mix) override;
  std::size_t contribution_bytes(Version r) const override;

  bool is_whole() const { return options_.parts == 0; }
  std::size_t outer_elements() const { return std::min(options_.outer_elements, work_.windows.elements()); }
  std::optional<Version> sent_after(std::int64_t t) const;
  Range part(Version r) const;
  Range outer(Range range) const;
  Range rest(Range range) const;
  /// The i-th number.
  template <class Numbers>
  auto* at(Numbers& numbers, std::size_t i) const {
    return numbers.data() + i * memory::size_of(work_.windows.dtype());
  }
  std::byte* at(Member& member, const Worker& worker, std::size_t i) const;
  collective::Reduction sum_of(Range range) const;

  void on_start(Rank rank, Instant now);
  void on_arrival(Rank rank, Version t, Duration compute, Instant now);
  void send_model(Rank rank, Version r);
  void step_all(Range taken, const std::shared_ptr<Terms>& terms);
  void take_step(Rank rank, Range taken);
  void step_own(Rank rank, const std::shared_ptr<Terms>& terms);
  void deliver(Rank rank, Member& member, Instant now);

  const Options options_;
  OwnPace pace_;
  Neighbours neighbours_;
  WorkerAveragings averagings_;
  std::map<Rank, Worker> workers_;
  std::shared_ptr<Slow> common_;  ///< Parts.
  Version stepped_{-1};           ///< Parts: the last exchange that `common_` has taken.
};

}  // namespace paceline::scheduler
