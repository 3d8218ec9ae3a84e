#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "actors/future.h"
#include "actors/thrown.h"

namespace paceline {
namespace actors {

/// What a continuation's result becomes: a future's or a Result's value is its own.
template <class R>
struct Flat {
  using type = R;
};
template <class U>
struct Flat<Future<U>> {
  using type = U;
};
template <class U>
struct Flat<Result<U>> {
  using type = U;
};

template <class F, class T>
struct Continued : std::invoke_result<F, T> {
  static constexpr bool callable = std::is_invocable_v<F, T>;
};
template <class F>
struct Continued<F, void> : std::invoke_result<F> {
  static constexpr bool callable = std::is_invocable_v<F>;
};

/// Calls `function` with the value that `bytes` are, and completes `result` with what it gives.
template <class T, class F>
void run_continuation(F& function, const Bytes& bytes, const PendingResultPtr& result) {
  using R = std::remove_cvref_t<typename Continued<F, T>::type>;
  const auto call = [&]() -> decltype(auto) {
    if constexpr (std::is_void_v<T>) {
      return std::invoke(std::move(function));
    } else {
      auto value = from_bytes<T>(bytes, "a result");
      if (!value) throw TaskError(value.error());
      return std::invoke(std::move(function), *std::move(value));
    }
  };
  if constexpr (std::is_void_v<R>) {
    call();
    result->complete(Bytes{});
  } else if constexpr (std::is_same_v<R, Result<void>>) {
    result->complete(call().map([] { return Bytes{}; }));
  } else if constexpr (std::is_same_v<R, Result<typename Flat<R>::type>>) {
    result->complete(call().map([](const auto& value) { return to_bytes<typename Flat<R>::type>(value); }));
  } else if constexpr (!std::is_same_v<R, typename Flat<R>::type>) {
    const auto inner = call().pending();
    if (!inner) throw TaskError({ErrorKind::invalid, "the function of then() gave an empty future"});
    inner->when_ready([inner, result] { result->complete(inner->wait()); });
  } else {
    result->complete(to_bytes<R>(call()));
  }
}

/// `run` with the value of `source`, when that is there, on a thread for continuations; its errors pass on.
void continue_with(const PendingResultPtr& source, const PendingResultPtr& result,
                   std::function<void(const Bytes&)> run);

}  // namespace actors

template <class T>
template <class F>
auto Future<T>::then(F&& function) const {
  using Function = std::decay_t<F>;
  using Called = actors::Continued<Function, T>;
  static_assert(Called::callable, "then() takes a function of what the future gives");
  if constexpr (Called::callable) {
    using U = typename actors::Flat<std::remove_cvref_t<typename Called::type>>::type;
    static_assert(Serialisable<U>, "what the function of then() gives cannot travel: see paceline::Serialisable");
    if constexpr (Serialisable<U>) {
      (void)checked();
      auto result = std::make_shared<actors::PendingResult>(pending_->task(), pending_->actor(), true);
      auto kept = std::make_shared<Function>(std::forward<F>(function));  // It may be one that cannot be copied.
      actors::continue_with(pending_, result, [kept = std::move(kept), result](const Bytes& bytes) {
        actors::run_continuation<T>(*kept, bytes, result);
      });
      return Future<U>(std::move(result));
    }
  }
}

}  // namespace paceline
