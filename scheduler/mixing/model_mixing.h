#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/mixing/neighbours.h"
#include "scheduler/mixing/worker_averagings.h"

namespace paceline::scheduler {

/// What a mixing makes of models where workers publish after every local step: what was mixed is written into the
/// worker's window.
///
///   adapt then combine  contribution: the model after the step; result: sum of W_ij c_j
///
///   combine then adapt  contribution: the model before the step, at its start;
///                       result: sum of W_ij c_j + (after - before)
///
///   push-sum            the agent holds numerator x and weight w, the worker trains z = x / w;
///                       a step adds after - z to x
///
///   overlap             what a worker does not give away of x and w it keeps; shares of an exchange may come so many
///                       steps after its start, and the worker goes on without them until then
class ModelMixing {
 public:
  struct Options {
    std::shared_ptr<const MixPlan> plan;
    bool combine_then_adapt = false;
    bool push_sum = false;
    std::int32_t overlap = 0;  ///< With push-sum and combine_then_adapt. 0: none.
    bool stands_in = false;    ///< Models are kept, so that a worker can be stood in for. Without push-sum.
    /// For some of the workers; nullptr, or none: there is none.
    std::function<std::shared_ptr<const MixPlan>(const std::vector<Rank>&)> plan_of = {};
    std::shared_ptr<const MixPlan> plan_of_all = {};
    bool clusters = false;  ///< Means of clusters, and of all now and then.
  };

  ModelMixing(Workplace& work, OwnPace& pace, Neighbours& neighbours, Options options);

  bool has(Rank rank) const { return workers_.contains(rank); }
  /// The worker has published the model that it goes on from after `own`; one that had left does it again.
  void on_start(Rank rank, Version own, Instant now);
  void on_arrival(Rank rank, Version t, Duration compute, Instant now);
  void carry_out(const MixEngine::Mix& mix);
  /// The worker's model takes part in v as it is; OwnPace::finish follows, without a result in its window.
  void stand_in(Rank rank, Version v, Instant now);
  /// The model that the worker, which waits, has after `own` goes to its window, and it is told.
  void hand_over(Rank rank, Version own, Instant now);

  /// As OwnPace::Strategy has it.
  ModelMeans::Part model_of(Rank rank) const;
  /// How far the foremost worker here is, in steps and in exchanges.
  std::pair<Version, Version> furthest() const;
  bool overlaps() const { return options_.overlap > 0; }

 private:
  using Member = WorkerWindows::Member;
  using Bytes = ModelMeans::Bytes;
  using Term = Neighbours::Term;
  struct Worker {
    Neighbours::Turn& turn;
    bool outstanding = false;                 ///< Overlap.
    Version sent_at = {};                     ///< Overlap: the iteration at whose start the outstanding one began.
    Bytes x = {};                             ///< Push-sum: numerator; overlap: without what was given away.
    double weight = 1;                        ///< Push-sum's.
    Bytes total = {};                         ///< Overlap: start and all changes; what is under way is in nobody's x.
    std::shared_ptr<PooledBytes> model = {};  ///< Where models are kept: as its last mixing left it.
    bool stood_in_for = false;                ///< In the mixing under way, or the last one: it has no result of it.
  };

  /// An averaging for a worker that may be gone when its turn comes.
  void add_for(Rank rank, std::function<collective::Reduction(Member&, Worker&)> prepare,
               std::function<void(Member&, Worker&, Instant)> finish);
  void begin_exchange(Rank rank);
  double kept_share(Rank rank, Version v) const;
  void add_step(Rank rank);
  void mix_alike(const MixEngine::Mix& mix);
  void end_mix(const MixEngine::Mix& what, const Neighbours::Terms& terms, Member& member, Worker& w, Instant now);
  void go_on_without(Rank rank);
  void deliver(Rank rank, Member& member, Worker& w, Instant now);

  Workplace& work_;
  OwnPace& pace_;
  Neighbours& neighbours_;
  Options options_;
  WorkerAveragings averagings_;
  std::map<Rank, Worker> workers_;
};

}  // namespace paceline::scheduler
