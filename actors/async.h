#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "actors/submit.h"

namespace paceline {

/// After what a task is run again, as often as its retries say.
enum class RetryOn {
  death,    ///< Of its worker.
  failure,  ///< Of its worker, and whatever it throws. Not if an argument has failed, nor what was cancelled.
};

/// What a task needs to run.
struct TaskOptions {
  float cpus = 1;          ///< Of the node that runs it; 0 is possible.
  std::size_t memory = 0;  ///< Bytes that it will take: it runs where so many are not promised to others.
  int retries = 0;         ///< How often it is run again after what retry_on says.
  int node = -1;           ///< Where it runs; -1: where there is room, on this node first.
  bool spread = false;     ///< Such tasks go to nodes in turn; one whose node has no room goes where there is some.
  /// For people: what errors call it. Copied by async(). (A view, since g++ 12 ends a string in braces within a
  /// co_await wrongly.)
  std::string_view name{};
  /// How long after it was asked for its future ends, with an error of kind `timed_out`, if it is not over. The task is
  /// then cancelled as cancel() does it: one that has not begun never will, one that runs is told. Not run again.
  std::optional<Duration> timeout{};
  RetryOn retry_on = RetryOn::death;  ///< After what it is run again.
  /// Of a Generator: values that it may give before its Stream is asked for them; from 1 on.
  int ahead = actors::kStreamAhead;
};

namespace actors {
/// A task of a call whose first source is the callable.
inline PendingResultPtr submit_task(Call call, std::vector<ArgumentSource> sources, const TaskOptions& options,
                                    const std::shared_ptr<IncomingStream>& stream = nullptr) {
  if (options.spread && options.node >= 0)
    throw TaskError({ErrorKind::invalid, "a task for node " + std::to_string(options.node) +
                                             " that is to be spread: give it a node, or spread, not both"});
  call.name = std::string(options.name);
  return process_client().submit(std::move(call), std::move(sources),
                                 {{options.cpus, NodeId(options.node), options.memory, options.spread},
                                  {options.retries, options.retry_on == RetryOn::failure},
                                  options.timeout},
                                 stream);
}
}  // namespace actors

/// Runs `function(arguments...)` on some worker. `function` is a function pointer or a lambda; what it captures has to
/// be plain values, by copy (trivially copyable; a captured reference or pointer throws TaskError). Arguments travel by
/// value, as the parameters' types; a Future as an argument stands for its result, and the task runs when that is
/// there. A task that cannot run (no cluster, no room) is a Future whose get() throws. What returns a Generator<T>
/// gives a Stream<T> instead of a Future (actors/stream.h).
template <class F, class... Args>
requires(!std::is_same_v<std::remove_cvref_t<F>, TaskOptions>) auto async(const TaskOptions& options, F&& function,
                                                                          Args&&... arguments) {
  using Callable = std::decay_t<F>;
  using Encoded = actors::encoded_t<Callable, Args...>;
  using Invoked = actors::ResultOf<Callable, Encoded>;
  static_assert(actors::Travelling<Callable>,
                "paceline::async takes a function, or a lambda that captures plain values by copy: pass what else it "
                "needs as arguments");
  static_assert(
      actors::AllSerialisable<Encoded>::value,
      "an argument cannot travel: see paceline::Serialisable (give its type a serialize(), pass values, no pointers)");
  static_assert(!actors::AllSerialisable<Encoded>::value || !actors::takes_values<Callable>() || Invoked::callable,
                "the arguments of paceline::async do not fit the function's parameters");
  static_assert(actors::takes_values<Callable>(),
                "a parameter is a non-const reference: nothing comes back through it, return the result instead");
  static_assert(!Invoked::callable || actors::Convertible<Encoded, Args...>::value,
                "an argument cannot be converted to the function's parameter");
  if constexpr (actors::Travelling<Callable> && actors::AllSerialisable<Encoded>::value && Invoked::callable &&
                actors::Convertible<Encoded, Args...>::value) {
    using T = typename Invoked::type;
    static_assert(actors::gives_serialisable<T>, "the result cannot travel: see paceline::Serialisable");
    if constexpr (actors::gives_serialisable<T>) {
      actors::Call call;
      call.function = actors::or_throw(actors::name_of(&actors::run_function<Callable, Encoded>));
      call.callee = &actors::name_of_callable<Callable>;
      std::vector<actors::ArgumentSource> sources;
      sources.emplace_back(actors::or_throw(actors::encode_callable<Callable>(function)));
      actors::append_sources(sources, static_cast<Encoded*>(nullptr), std::forward<Args>(arguments)...);
      return actors::submitted<T>(call, actors::checked_ahead(options.ahead), [&](const auto& stream) {
        return actors::submit_task(std::move(call), std::move(sources), options, stream);
      });
    }
  }
}

/// The same without options.
template <class F, class... Args>
requires(!std::is_same_v<std::remove_cvref_t<F>, TaskOptions>) auto async(F&& function, Args&&... arguments) {
  return async(TaskOptions{}, std::forward<F>(function), std::forward<Args>(arguments)...);
}

}  // namespace paceline
