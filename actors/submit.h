#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/future.h"
#include "actors/invoke.h"
#include "actors/process_client.h"
#include "actors/stream.h"

namespace paceline::actors {

template <class T>
T or_throw(Result<T> result) {
  if (!result) throw TaskError(result.error());
  return *std::move(result);
}

/// The caller's side of one argument: what travels as Encoded.
template <class Encoded, class Arg>
ArgumentSource source_of(Arg&& argument) {
  if constexpr (is_future<Arg>) {
    if (!argument.valid()) throw TaskError({ErrorKind::invalid, "an empty future is an argument"});
    return argument.pending();
  } else {
    return bytes_as<Encoded>(std::forward<Arg>(argument));
  }
}

template <class... Encoded, class... Args>
void append_sources(std::vector<ArgumentSource>& sources, std::tuple<Encoded...>*, Args&&... arguments) {
  (sources.push_back(source_of<Encoded>(std::forward<Args>(arguments))), ...);
}

/// What the caller of something that returns R has: Future<R>, or a stream. `submit` is given that stream, or null.
template <class R, class Submit>
auto submitted(Call& call, std::uint32_t ahead, Submit submit) {
  if constexpr (is_generator<R>) {
    call.ahead = ahead;
    auto incoming = std::make_shared<IncomingStream>(ahead);
    submit(incoming);
    return Stream<typename GeneratorValue<R>::type>(std::move(incoming));
  } else {
    return Future<R>(submit(std::shared_ptr<IncomingStream>()));
  }
}

/// Whether what is called may return an R.
template <class R>
inline constexpr bool gives_serialisable = Serialisable<R>;
template <class T>
inline constexpr bool gives_serialisable<Generator<T>> = Serialisable<T>;

template <class F, class Encoded>
struct ResultOf;
template <class F, class... Encoded>
struct ResultOf<F, std::tuple<Encoded...>> {
  static constexpr bool callable = std::is_invocable_v<F, Encoded...>;
};
template <class F, class... Encoded>
requires(std::is_invocable_v<F, Encoded...>) struct ResultOf<F, std::tuple<Encoded...>> {
  static constexpr bool callable = true;
  using type = typename AsyncValue<std::invoke_result_t<F, Encoded...>>::type;
};

template <class T, class Method, class Encoded>
struct MethodResultOf;
template <class T, class Method, class... Encoded>
struct MethodResultOf<T, Method, std::tuple<Encoded...>> : ResultOf<Method, std::tuple<T*, Encoded...>> {};

}  // namespace paceline::actors
