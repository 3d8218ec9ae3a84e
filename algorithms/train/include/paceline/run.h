#pragma once

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "actors/arguments.h"
#include "actors/invoke.h"
#include "paceline/run_options.h"
#include "paceline/run_result.h"

namespace paceline {

class Worker;

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
