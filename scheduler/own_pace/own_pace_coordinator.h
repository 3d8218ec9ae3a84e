#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "scheduler/own_pace/endings.h"
#include "scheduler/own_pace/model_means.h"
#include "scheduler/rounds/running_median.h"
#include "scheduler/shell/coordinator.h"

namespace paceline::scheduler {

/// Base of the coordinators of strategies whose workers are at versions of their own. There are no rounds of all, so
/// what these give to other strategies has ways of its own here:
///
///   evaluation  of the mean of the models that the workers had after version v, beside training (model_means.h)
///   end         a worker that has done the last version is held until the mean of all last models is there
///   stop        the last version is agreed on (endings.h): the highest that anybody has begun, of all workers, where
///               they wait for each other, else each ends with the iteration that it has begun
///   death       told to all nodes by the worker's own
///
/// Each worker publishes the model that it starts from as the iteration before the first one, and then one an
/// iteration, or at those iterations only that the strategy names; each time it waits for its verdict.
class OwnPaceCoordinator : public Coordinator, private ModelMeans::Workers, private Endings::Workers {
 public:
  void on_arrival(Rank rank, Version t, Duration compute, Instant now) final;
  void on_alive(Rank rank, Instant now) final { alive_[rank] = now; }
  void on_gone(Rank rank, Instant now) final;
  void on_released(Version v) final { means_.on_released(v); }
  void stop_soon(Instant) final { endings_.stop_soon(); }
  bool evaluations_hold() const final { return false; }

  Version done() const final;
  Version last() const final { return last_; }
  Duration median_step() const final { return steps_.get(); }

 protected:
  using Bytes = ModelMeans::Bytes;
  using ModelPart = ModelMeans::Part;

  explicit OwnPaceCoordinator(Workplace& work);

  // What strategies differ in -----------------------------------------------------------------------------------------

  ModelPart model_of(Rank) override { return {}; }
  bool parts_are_by_version() const override { return true; }
  /// The next iteration after v at which the strategy wants workers to publish. Evaluations, and the end, come besides.
  virtual Version next_publication(Version v) const { return v.next(); }
  /// Whether what was published after v is changed: else the worker goes on with the same numbers.
  virtual bool averages(Version) const { return true; }
  bool ends_apart() const override { return false; }
  /// The job ends early, and where its workers end is known (`last_of`).
  virtual void on_ends_apart() {}
  std::vector<Rank> left() const override { return {}; }
  Version last_given(Version frozen) const override { return frozen; }
  bool records_holds() const override { return false; }
  /// Nothing after `last` has been begun by anybody: from there on these workers have a graph of their own.
  virtual void on_remade(Version /*last*/, const std::vector<Rank>& /*members*/, Instant) {}
  /// Messages of the strategy itself.
  virtual void on_strategy_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                                   Instant now) = 0;
  /// The worker, whose iteration `own` is done, may begin the next one: it is told.
  virtual void let_go(Rank rank, Version own, Instant) { verdict(rank, own, false); }
  /// The worker has done its last iteration.
  virtual void on_last(Rank, Instant) {}
  /// The worker, of this node, is gone: it will neither arrive nor take a result. To be told to all nodes.
  virtual void leave(Rank rank, Instant now) = 0;
  /// This agent goes on without another one: what that has given of its workers is all that there will be.
  virtual void on_node_lost(NodeId node, Instant now) = 0;

  // What is common to all; each calls it for what it does not know ----------------------------------------------------

  void on_peer_message(NodeId from, const wire::Envelope::Reader& message, std::vector<std::byte> bulk,
                       Instant now) final;
  void pass_on(NodeId lost, NodeId to) override;
  void step(const Decision& d) override;
  void step_end(Version last) final;
  /// How the job ended was agreed on in the recorded run.
  bool needs_nothing(const Decision& d) const final { return d.kind == Decision::Kind::ends; }
  void verdict(Rank rank, Version own, bool end);

  /// To be called at every arrival: what the worker published, pinned. nullopt: it has published nothing of `t`.
  std::optional<memory::Buffer> on_published(Rank rank, Version t, Duration compute);
  /// The agent has what it needs of the worker's start.
  void begin(Rank rank, Instant now) { go_on(rank, Version{work_.job.first.value - 1}, now); }
  /// The worker's iteration v is averaged, its result delivered: it goes on, or waits for the end.
  void finish(Rank rank, Version v, Instant now);
  /// The mean of all models after v is one of those that are evaluated on the way.
  bool is_due(Version v) const;
  /// The last iteration that the worker does, as far as it is known.
  Version last_of(Rank rank) const;
  std::vector<Rank> living_ranks() const final;
  Duration patience() const;
  /// Until when others wait for it, whose last word was at `word`: it may have given signs of life since.
  Instant awaited_until(Rank rank, Instant word) const;
  /// Others have waited for it at iteration t: if that is over, it leaves.
  void leave_if_awaited_too_long(Rank rank, Version t, Instant word, Instant now);
  /// Tells the node of a worker that others have waited for it beyond patience, for its v if that is known.
  void complain_of(Rank rank, Version v);
  Instant started() const { return started_; }

  ModelMeans means_;
  Endings endings_;

 private:
  RoundSums latest_of(Rank rank) const override;
  void on_end(Rank rank) override { verdict(rank, last_, true); }
  Version begun_of(Rank rank) const override;
  Version furthest_begun() const override;

  Instant silent_since(Rank rank, Instant word) const;
  Version next_word(Version own) const;
  void go_on(Rank rank, Version own, Instant now);
  void go_on_all(Instant now);
  void go(Rank rank, Instant now);
  void report();
  std::optional<Version> held_at(Rank rank) const;

  Version last_;
  RunningMedian steps_;
  std::map<Rank, Instant> alive_;     ///< The last sign of life that is no word.
  std::set<Rank> gone_;               ///< Of this node, those too that never opened a share.
  std::map<Rank, Version> begun_;     ///< The last iteration that a local worker may do before it waits.
  std::map<Rank, Version> finished_;  ///< The last one that was averaged.
  std::map<Rank, RoundSums> latest_;  ///< Of what it last published.
  std::map<Rank, Version> ends_at_;   ///< Where workers of this node end apart, on the leader those of all.
  std::map<Rank, Version> waiting_;   ///< Those that are held back, with what they have finished.
  RoundSums unreported_;
  Version reported_;
  Instant started_;
};

}  // namespace paceline::scheduler
