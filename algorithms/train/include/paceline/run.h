#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "actors/arguments.h"
#include "actors/invoke.h"
#include "paceline/metric.h"
#include "paceline/run_result.h"

namespace paceline {

class Worker;

/// What a training job asks for. Every field but `samples` and `metric` has a flag of `paceline run` of the same name,
/// which overrides it.
struct RunOptions {
  std::int32_t workers = 2;
  std::string strategy = "allreduce";
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
  /// own; evaluations and checkpoints then have those of the worker that makes them, of node 0.
  std::string buffers = "average";
  Metric metric{};                    ///< What the values of evaluations are: `{"perplexity", paceline::minimise}`.
  std::optional<double> target{};     ///< The job ends when an evaluation reaches it; without one it runs to the end.
  std::int32_t early_stopping = 0;    ///< Or when so many evaluations in a row were no better than the best; 0: never.
  std::int32_t keep_checkpoints = 1;  ///< So many of the last ones; that of the best evaluation is kept besides.
  std::uint64_t seed = 1;
  std::string resume{};  ///< Checkpoint, or run directory that holds one, to go on from.
};

/// Runs `train` on every worker of a job and returns when the job has ended. Called by the driver's `main`, as often as
/// it likes, one run after the other: each has a run directory of its own, and flags of `paceline run` hold for all.
/// Errors are printed as one line and are in the exit code. Within a worker or a task it throws TaskError: jobs are
/// started by drivers.
RunResult run(void (*train)(Worker&), const RunOptions& options = {});

namespace detail {

template <class F, class Encoded>
inline constexpr bool trains = false;
template <class F, class... Encoded>
requires(std::is_invocable_v<F, Worker&, Encoded...>) inline constexpr bool trains<F, std::tuple<Encoded...>> =
    std::is_void_v<std::invoke_result_t<F, Worker&, Encoded...>>;

/// What every worker is to run: an actors::Thunk whose object is the Worker, and what it is given.
struct TrainingCall {
  Result<void> (*thunk)(actors::Invocation&);
  Result<std::vector<Bytes>> arguments;
};
RunResult run(TrainingCall call, const RunOptions& options);

}  // namespace detail

/// Runs `train(worker, arguments...)` on every worker. `train` is a function or a lambda; what a lambda captures has to
/// be plain values, by copy (trivially copyable: numbers, structs and arrays of such). Arguments are copied to every
/// worker, as the types of the parameters: numbers, strings, standard containers of such, and types with a
/// `serialize()` (see paceline::Serialisable); together at most 60 MiB.
///   paceline::run([hidden](paceline::Worker& me, const Config& config) { ... }, {.workers = 4}, config);
template <class F, class... Args>
RunResult run(F&& train, const RunOptions& options = {}, Args&&... arguments) {
  using Callable = std::decay_t<F>;
  using Tail = typename actors::TailOf<actors::parameters_t<Callable>>::type;
  using Encoded = typename actors::EncodedTypes<Tail, std::tuple<Args...>>::type;
  constexpr bool travels = actors::Travelling<Callable>;
  constexpr bool serialises = actors::AllSerialisable<Encoded>::value;
  constexpr bool fits = detail::trains<Callable, Encoded> && actors::Convertible<Encoded, Args...>::value;
  static_assert(!(actors::is_future<Args> || ...), "a training job takes values: pass future.get()");
  static_assert(travels,
                "paceline::run takes a function, or a lambda that captures plain values by copy: pass what else it "
                "needs as arguments, after the options");
  static_assert(
      serialises,
      "an argument cannot travel: see paceline::Serialisable (give its type a serialize(), pass values, no pointers)");
  static_assert(fits,
                "the function takes a paceline::Worker& first, then the arguments that follow the options, and returns "
                "nothing");
  if constexpr (travels && serialises && fits) {
    return detail::run(
        {&actors::run_function_with<Worker, Callable, Encoded>,
         actors::encode_call<Encoded>(static_cast<const Callable&>(train), std::forward<Args>(arguments)...)},
        options);
  }
}

}  // namespace paceline
