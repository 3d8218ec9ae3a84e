#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "paceline/metric.h"

namespace paceline {

/// What a training job asks for. Every field but `samples` and `metric` has a flag of `paceline run` of the same name,
/// which overrides it.
struct RunOptions {
  std::int32_t workers = 2;  ///< Places for workers.
  /// How many are taken at the start: 0: all; -1: as many as the cluster has cpus, and `minimum` at least. The others
  /// are when the job is scaled (`paceline scale`).
  std::int32_t begin_with = 0;
  std::int32_t minimum = 1;  ///< With fewer workers the run fails; it is not scaled below.
  /// false: the script needs as many workers as it began with. None may join or leave it, and the run fails when one is
  /// lost, or a node with some: but for one that was killed, or has crashed, and is started again.
  bool elastic = true;
  std::string strategy = "allreduce";
  /// What becomes of learning rates while fewer of the `workers` take part: `none`: nothing; `linear`: they are
  /// multiplied by the share that does; `sqrt`: by its root. Not under strategies without rounds of all.
  std::string lr_scaling = "none";
  double epochs = 1;            ///< Passes over the data, counted in nominal samples.
  std::int32_t batch = 32;      ///< Samples of a mini-batch (one run of the loop's body).
  std::int32_t accumulate = 1;  ///< Mini-batches an update; `nonblocking(batches=N)` brings its own N.
  std::int64_t samples =
      0;  ///< Samples of an epoch; 0: the size of the training set given to `Worker::batches` or `sampler`.
  double evaluate_every_epochs = 1;  ///< How often the averaged model is evaluated and saved; 0: at the end only.
  double checkpoint_every_s = 0;     ///< Save besides when so many seconds have passed; 0: with evaluations only.
  /// What an averaging of models does with the optimisers' state: `keep` it, each worker its own; `reset` it; `average`
  /// it with the model (SGD, Adam, AdamW, RMSprop, Adagrad; counters of steps are kept). Empty: the strategy's own,
  /// which is reset for bmuf and block momentum, else keep.
  std::string optimizer_state{};
  /// Float buffers of modules (BatchNorm's running statistics): `average` them with the model, or `keep` each worker's
  /// own; evaluations and checkpoints then have those of the worker that makes them, of the node that leads.
  std::string buffers = "average";
  Metric metric{};                    ///< What the values of evaluations are: `{"perplexity", paceline::minimise}`.
  std::optional<double> target{};     ///< The job ends when an evaluation reaches it; without one it runs to the end.
  std::int32_t early_stopping = 0;    ///< Or when so many evaluations in a row were no better than the best; 0: never.
  std::int32_t keep_checkpoints = 1;  ///< So many of the last ones; that of the best evaluation is kept besides.
  std::uint64_t seed = 1;
  std::string resume{};  ///< Checkpoint, or run directory that holds one, to go on from.
};

}  // namespace paceline
