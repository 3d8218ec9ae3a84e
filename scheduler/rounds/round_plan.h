#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/instant.h"

namespace paceline::scheduler {

/// What starts an averaging (architecture: "trigger").
enum class Trigger {
  all_arrived,
  first_arrived,
  // These also fire when somebody who has arrived has waited for patience.
  initiator,  ///< One worker, another at every version, has arrived; if it has left, the next one that has not.
  quorum,     ///< So many have arrived, or as many as are left.
};
/// What a late worker does (architecture: "lateness").
enum class Lateness {
  waits,     ///< The others wait for it.
  merges,    ///< Its node contributes what it last published; it merges when it arrives, and goes on with its own next
             ///< iteration.
  skips,     ///< The same, but it goes on with the iteration that is then current.
  abandons,  ///< It drops the rest of its batch when the round fires; finished mini-batches count (n may be 0).
  finishes,  ///< It drops the rest of its batch when the first arrives, but the round waits for the mini-batch under
             ///< way.
  accumulates,  ///< Gradients: it applies the newest result when it arrives; its own is added to its next contribution.
  drops,        ///< The same, but its own gradient is lost.
};
enum class Payload { gradients, models };

/// `grace`: a round with trigger all_arrived fires this long after the first arrival at the latest; one with trigger
/// quorum this long after the quorum, or once all have arrived.
struct Grace {
  Duration fixed{};         ///< Used if > 0.
  double median_steps = 0;  ///< Else this many times the running median step time (waiting excluded).
  /// Trigger quorum: else this many times the running median, over its rounds, of the time from the first arrival to
  /// the quorum, as the agent that counts has measured it.
  double median_spreads = 0;
};

/// Sums that travel with the contributions of a round; identical on all agents once the round is executed.
struct RoundSums {
  double loss_sum = 0;          ///< Of per-worker mean losses over their loss windows.
  std::int64_t loss_count = 0;  ///< Workers that contributed to loss_sum.
  std::int64_t samples = 0;
  double learning_rate = 0;  ///< Of the lowest contributing rank.
  Duration leader_time{};    ///< The leader's training clock when it sealed; zero time elsewhere.
  std::int32_t stops = 0;    ///< Nodes that were asked to end the job: it ends at the first sync where this is not 0.
  std::int64_t members = 0;  ///< Workers that have a part in the round, whatever they give.
};

/// One averaging: what happens after iteration `version`.
struct Round {
  enum class Kind {
    none,   ///< No averaging after this iteration.
    group,  ///< Averages inside groups.
    sync,   ///< One group of all.
  };
  Kind kind = Kind::none;
  Trigger trigger = Trigger::all_arrived;
  Lateness late = Lateness::waits;
  std::optional<Grace> grace = {};
  Payload payload = Payload::models;
  Rank initiator{};                 ///< Trigger initiator: who.
  std::int32_t quorum = 0;          ///< Trigger quorum: how many.
  bool merges_own_version = false;  ///< A late worker merges with the version that it missed, not with the newest.

  /// Gradients are given by whoever is there; the late apply the newest mean, so that models differ afterwards.
  bool is_partial() const { return late == Lateness::accumulates || late == Lateness::drops; }
};

/// Which averagings there are: the strategy's answers, asked by the round engine. Pure and deterministic; every agent
/// has its own copy and feeds it the same executed rounds, so that all give the same answers.
class RoundPlan {
 public:
  virtual ~RoundPlan() = default;

  virtual Payload payload() const = 0;
  /// What follows iteration v. Defined for v up to and including the next sync after the last executed one.
  virtual Round round(Version v) const = 0;
  /// Groups of version v as sorted ranks; they are disjoint and cover 0..P-1. Only for kind group (a sync has one group
  /// of all).
  virtual std::vector<std::vector<Rank>> groups(Version v) const = 0;
  /// First version >= v with a round (a local period ends there).
  virtual Version next_round(Version v) const = 0;
  /// True if workers tell their node about every iteration, also those without a round (late=skip or a grace).
  virtual bool publishes_every_iteration() const = 0;
  /// Some rounds are started by one worker or by so many: agents tell each other who has left.
  virtual bool asks_who_is_left() const = 0;
  /// Version v was executed with these sums (adaptive periods listen).
  virtual void on_executed(Version v, const RoundSums& sums) = 0;
  /// The period in force (for reports).
  virtual std::int64_t period() const = 0;
  /// The learning rate's schedule may decay it now; false: it is held where it is, and goes on when this is true again.
  virtual bool lr_may_decay() const { return true; }
  /// Buffers that each worker's window needs (architecture 1.2).
  virtual std::int32_t buffers() const = 0;
};

}  // namespace paceline::scheduler
