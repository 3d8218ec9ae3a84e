#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "algorithms/payloads.h"
#include "algorithms/strategy.h"
#include "runtime/base/instant.h"

namespace paceline::session {

/// What an agent tells a worker that opens its share of a job: what the job is, and what its strategy asks of workers.
/// Constant from there on. Knows no strategy by name.
struct JobTerms {
  std::int32_t workers = 1;       ///< P
  std::int32_t bodies = 1;        ///< Mini-batches an update.
  std::int32_t buffers = 1;       ///< Of the worker's window.
  std::int64_t first_update = 0;  ///< Where a resumed run goes on.
  std::int64_t updates = 0;       ///< T
  std::int64_t next_round = 0;    ///< First iteration that has to be reported.
  std::uint64_t seed = 0;
  std::int32_t node = 0;
  std::string trace{};    ///< The file for what the worker did when; empty: none.
  Duration time_limit{};  ///< 0: none.
  algorithms::Payloads payloads{};
  algorithms::Outer outer{};       ///< What the worker makes after an average of all.
  std::size_t loss_window = 1;     ///< Losses of so many mini-batches are reported as their mean.
  bool publishes_every = false;    ///< Every iteration is reported, also those without a round.
  bool abandons = false;           ///< Each mini-batch is published; the update may end early.
  bool own_pace = false;           ///< Evaluations are of models that are nobody's own.
  bool shows_start = false;        ///< The agent wants to see the start before the first iteration.
  bool finishes = false;           ///< When another ends the update, the mini-batch under way is the last one.
  bool steps_apart = false;        ///< Models of the step's start are averaged (algorithms/step_apart.h).
  bool accumulates = false;        ///< A gradient that missed its round is added to the next one.
  bool weighs_by_samples = false;  ///< A publication brings all since the worker last took an average.
  bool rotate_shards = false;      ///< Worker i reads shard (i + epoch) mod P.
  bool reset_momentum = false;     ///< The optimiser's buffers are cleared at every averaging.
  bool lr_may_decay = true;
  double lr_factor = 1;  ///< That learning rates are multiplied by.
  bool returns = false;  ///< In the place of a process that has ended: it begins with the state of another worker.
  /// What the session calls it from here on: with the leg in which it is (runtime/base/job_leg.h).
  std::uint64_t job = 0;
  bool goes_on = false;  ///< It was there in the leg before: it begins with what it has.
  std::string place{};   ///< Where in the data the leg begins, once a worker has said so.

  bool has_outer_step() const { return outer.kind != algorithms::Outer::Kind::none; }
  /// There is nobody to average with, and nothing that an agent does in between.
  bool is_alone() const { return workers == 1 && !has_outer_step() && !shows_start; }
  /// It steps with a batch of its own, which others may end, then models are mixed.
  bool steps_by_batch() const { return shows_start && payloads.gradients_until > 0; }
};

}  // namespace paceline::session
