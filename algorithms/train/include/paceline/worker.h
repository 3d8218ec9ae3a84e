#pragma once

#include <torch/torch.h>
#include <cereal/archives/binary.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/train/worker_main.h"
#include "paceline/data.h"

namespace paceline {

namespace train {
struct Core;
class Prefetch;
}  // namespace train

/// Thrown by `step` and `next` when the job cannot go on (NaN loss, the agent gone). The job has been told already: let
/// it fly out of the training function.
class Stopped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What else is to happen in a step.
struct StepOptions {
  /// Runs before the optimiser, with the gradient that it will apply in `.grad` (clipping goes here). With several
  /// shares under a strategy that averages gradients that is at the last `step` of the body: what it refers to must
  /// live until then. With a closure: after each evaluation.
  std::function<void()> before_update;
};

/// How often a learning rate schedule is advanced. An update is `workers * batch` samples, and as many times that as a
/// strategy has batches or the run accumulates; an epoch is the same samples under every strategy.
enum class Advance { per_update, per_epoch };
/// A schedule counts updates.
inline constexpr Advance per_update = Advance::per_update;
/// A schedule counts epochs, as one does whose step() stands after the loop over the batches.
inline constexpr Advance per_epoch = Advance::per_epoch;

/// Zeroes the gradients, evaluates the loss, calls backward() and returns the loss.
using LossClosure = std::function<torch::Tensor()>;

/// A model and its optimiser that all workers train together. A handle into its Worker.
class Shared {
 public:
  Shared(std::shared_ptr<train::Core> core, std::size_t number) : core_(std::move(core)), number_(number) {}

  /// In place of `optimizer.step()`: one mini-batch is done, gradients are in `.grad`. Averages as the strategy says;
  /// `.grad` is the caller's own again afterwards. Throws std::logic_error if a parameter was moved (load, to) since
  /// `share`, Stopped if the loss is not finite.
  ///
  /// Several shares: each is stepped once in every body, in an order that is yours, and what was shared is averaged as
  /// one at the last of these steps. Where models are averaged each optimiser steps at once. Where gradients are
  /// averaged (allreduce, server, nonblocking) they are taken at once, so that later backward passes do not mix into
  /// them, and all optimisers step at the end of the body, in the order of the shares.
  void step(const torch::Tensor& loss, const StepOptions& options = {});
  /// For optimisers that evaluate several times (LBFGS), in place of `optimizer.step(closure)`. Throws
  /// std::invalid_argument under a strategy that averages gradients: the average would have to come before the step.
  void step(const LossClosure& closure, const StepOptions& options = {});
  /// From now on `scheduler` is advanced by as many updates, or epochs, as the job advances. Do not call its step().
  void schedule(torch::optim::LRScheduler& scheduler, Advance advance = Advance::per_update);
  /// Copies of all parameters by name. (`parameters()` moves between buffers: aliases would see an old model.)
  torch::OrderedDict<std::string, torch::Tensor> snapshot() const;

 private:
  std::shared_ptr<train::Core> core_;
  std::size_t number_;
};

/// How mini-batches are made of a data set.
struct BatchOptions {
  std::int64_t batch = 0;  ///< Samples of a mini-batch; 0: the run's. Another number than the run's is refused.
  /// Reads the next mini-batch on a thread of its own while this one is trained on: for data that take a while
  /// (`paceline::images`), where a core is free for it.
  bool prefetch = false;
};

/// Mini-batches of this worker's share of the data: disjoint between workers, reshuffled every epoch.
class Batches {
 public:
  Batches(std::shared_ptr<train::Core> core, Dataset data, const BatchOptions& options);
  /// The mini-batch of the current body; to be called once after every `Worker::next()`.
  Batch next();

 private:
  std::shared_ptr<train::Core> core_;
  Dataset data_;
  std::int64_t batch_;
  std::shared_ptr<train::Prefetch> prefetch_;
};

namespace detail {
template <template <class...> class Optional, class T>
Optional<std::size_t> optional_size(const Optional<T>&);
using SampledIndices = decltype(std::declval<torch::data::samplers::Sampler<>&>().next(0));
using OptionalSize = decltype(optional_size(std::declval<SampledIndices>()));
}  // namespace detail

/// This worker's share of any torch::data set, for torch::data::make_data_loader. Endless: `Worker::next()` ends the
/// loop. A mini-batch belongs to the body that its number says; what a loader fetched ahead of an abandoned batch is
/// used by the next bodies.
class Sampler : public torch::data::samplers::Sampler<> {
 public:
  Sampler(std::shared_ptr<train::Core> core, std::int64_t samples);
  void reset(detail::OptionalSize new_size = {}) override;
  detail::SampledIndices next(std::size_t batch_size) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  std::shared_ptr<train::Core> core_;
  std::int64_t samples_;
  std::int64_t following_ = 0;  // Number of the next body to draw for,
  std::int32_t leg_ = 0;        // in this leg of the job.
};

/// One worker of a training job, as the training function sees it. Used by the thread that was given it.
class Worker {
 public:
  explicit Worker(const train::WorkerStart& start);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Trains `net` with `optimizer` together with all workers; everyone starts as worker 0. Before the first `next` and
  /// before a data loader over `sampler` begins; several times for several models, in the same order on all workers.
  /// Both must outlive the loop. Parameters: float64, float32, bfloat16, float16, on the CPU. Averaged is float64 if
  /// one of them is, else float32; float buffers no wider than that are, too, others are each worker's own. Throws
  /// std::invalid_argument: a tensor registered twice, complex parameters, an optimiser over other tensors.
  template <class Net>
  Shared share(torch::nn::ModuleHolder<Net>& net, torch::optim::Optimizer& optimizer) {
    return share(std::static_pointer_cast<torch::nn::Module>(net.ptr()), optimizer);
  }
  template <class Net>
  Shared share(const std::shared_ptr<Net>& net, torch::optim::Optimizer& optimizer) {
    return share(std::static_pointer_cast<torch::nn::Module>(net), optimizer);
  }
  Shared share(std::shared_ptr<torch::nn::Module> net, torch::optim::Optimizer& optimizer);

  /// This worker's mini-batches. `batch` 0: the run's; another number than the run's is refused.
  Batches batches(Dataset data, std::int64_t batch = 0) {
    return batches(std::move(data), BatchOptions{.batch = batch});
  }
  Batches batches(Dataset data, const BatchOptions& options);
  /// For a data loader over a data set of `samples` samples (fewer than it has: over the first ones), with mini-batches
  /// of batch(); the loader's first one throws std::invalid_argument at another size.
  Sampler sampler(std::int64_t samples);
  /// `metric` is called on the averaged model, in eval() and without gradients, as often as the run says
  /// (RunOptions::evaluate_every_epochs); it feeds the run's target.
  void evaluate(std::function<double()> metric);

  /// Leases the next mini-batch; false: steps done, target reached, stopped, or this worker leaves. Then the model is
  /// the final averaged one. Evaluates, saves and restores in between. Seeds torch's generator from (seed, worker,
  /// update, body).
  bool next();

  std::int32_t rank() const;     ///< Which worker this is, from 0.
  std::int32_t workers() const;  ///< That the job may have: its places. Fewer may be there.
  /// Of these, how many take part: had a part in the last average of all that this worker took. Under strategies
  /// without rounds of all it is how many the job began with.
  std::int32_t present() const;
  /// `f` is called in `next`, before the first mini-batch and before each from which on another number of workers is
  /// `present`.
  void on_view(std::function<void()> f);
  std::int64_t batch() const;   ///< Samples of a mini-batch.
  std::int64_t update() const;  ///< The job's progress, equal on all workers.
  std::int64_t epoch() const;   ///< Passes over the data that are done before this mini-batch.

  /// A metric of the user's, shown and written to the run's metrics.
  void log(const std::string& name, double value);
  /// The training depends on the contents of this file, which the script reads by itself. `paceline replay` then
  /// refuses to go on from other contents; of a folder, from files of other names, sizes or times of writing. (Data
  /// sets of Paceline's own, and `--resume`, say so themselves.)
  void uses_file(const std::string& path);
  /// All workers end at the same update.
  void stop(const std::string& reason);
  /// `value` (any type that cereal can write) becomes part of the replica: it survives restarts. Must outlive the loop.
  template <class T>
  void state(T& value) {
    add_state(
        [&value] {
          std::ostringstream out;
          cereal::BinaryOutputArchive archive(out);
          archive(value);
          return std::move(out).str();
        },
        [&value](const std::string& bytes) {
          std::istringstream in(bytes);
          cereal::BinaryInputArchive archive(in);
          archive(value);
        });
  }

 private:
  friend Result<void> train::run_worker(const train::WorkerStart& start);
  void fail(const std::string& reason);
  void add_state(std::function<std::string()> save, std::function<void(const std::string&)> load);
  std::shared_ptr<train::Core> core_;
};

}  // namespace paceline
