#pragma once

#include <algorithm>
#include <cstdint>

#include "scheduler/rounds/round_plan.h"

namespace paceline::scheduler {

/// What contributions to a round weigh, and how their sum becomes the gradient or model that the members get; and what
/// the step of a worker weighs that makes it by itself, before models are mixed. Pure: agents and the simulator ask it.
///
/// Gradients of a batch that some workers did not finish (Non-blocking SGD; docs name the readings a, b, d): worker i
/// contributes s_i, the sum of the mean gradients of the n_i <= N mini-batches that it completed. With mean_i =
/// s_i/n_i the members get
///
///   b  (1/P) sum_i (n_i/N)   * mean_i      divisor members
///   a  (1/P) sum_i (n_i/N)^2 * mean_i      divisor members, by_bodies: the paper's formulas to the letter
///   d  sum_i n_i * mean_i / sum_i n_i      divisor bodies
///
/// which all are the plain mean over P*N mini-batches where every n_i = N.
struct Weighing {
  /// Of gradients; models are divided by how many there are.
  enum class Divisor {
    contributions,  ///< Mean over those that contributed: members wait.
    members,        ///< Over all members, also those with nothing (eager-SGD; readings a, b).
    bodies,         ///< Over all mini-batches that were summed (reading d).
  };
  Divisor divisor = Divisor::contributions;
  std::int32_t bodies = 1;  ///< N: mini-batches of one complete update.
  bool by_bodies = false;   ///< A contribution of n of N mini-batches counts n/N times.
  /// A model counts as many times as it has samples, once, and its worker takes what comes of the mean.
  bool by_samples = false;

  /// Of all contributions.
  struct Total {
    std::int64_t contributions = 0;
    std::int64_t bodies = 0;
    std::int64_t samples = 0;
  };

  /// Factor on the sum of so many finished mini-batches, before it is a contribution.
  double of_unfinished(std::int64_t done) const {
    return by_bodies ? static_cast<double>(done) / static_cast<double>(bodies) : 1;
  }
  /// Factor on a contribution.
  double of_samples(std::int64_t samples) const { return by_samples ? static_cast<double>(samples) : 1; }
  /// By what the sum of all contributions is divided; not 0, also where there are none. `members`: of the round.
  double divisor_of(const Total& total, std::int64_t members, Payload payload) const {
    const auto at_least_one = [](std::int64_t n) { return static_cast<double>(std::max<std::int64_t>(1, n)); };
    if (by_samples) return at_least_one(total.samples);
    if (payload == Payload::models) return at_least_one(total.contributions);
    switch (divisor) {
      case Divisor::contributions: return at_least_one(total.contributions) * bodies;
      case Divisor::members: return at_least_one(members) * bodies;
      case Divisor::bodies: return at_least_one(total.bodies);
    }
    return 1;
  }
  /// Factor on the sum of `done` mini-batches with which one of `members` workers makes a step of its own. The mean of
  /// all these steps is the round's.
  double of_own_step(std::int64_t done, const Total& total, std::int64_t members) const {
    const std::int64_t counted = members * (by_bodies ? done : bodies);
    return static_cast<double>(counted) / (divisor_of(total, members, Payload::gradients) * bodies);
  }
};

}  // namespace paceline::scheduler
