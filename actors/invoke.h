#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "actors/function_ref.h"
#include "actors/serialise.h"

namespace paceline {

template <class T>
class Future;
template <class T>
class Handle;

namespace actors {

/// What a thunk is given and gives. Argument 0 names the callee where it is a run-time value (a pointer), the others
/// are the caller's.
struct Invocation {
  void* object = nullptr;  ///< Methods: the actor's instance.
  std::span<const Bytes> arguments;
  std::shared_ptr<void> created;  ///< Constructors: the new instance.
  Bytes result;
};
/// Decodes the arguments and calls. `invalid` where they do not decode; what the user's code throws passes through.
using Thunk = Result<void> (*)(Invocation&);

template <class T>
struct FutureValue {
  static constexpr bool is_future = false;
  using type = T;
};
template <class T>
struct FutureValue<Future<T>> {
  static constexpr bool is_future = true;
  using type = T;
};
template <class T>
inline constexpr bool is_future = FutureValue<std::remove_cvref_t<T>>::is_future;

/// The type as which a value of type T travels: texts own their characters.
template <class T>
struct Travels {
  using type = std::decay_t<T>;
};
template <>
struct Travels<std::string_view> {
  using type = std::string;
};
template <>
struct Travels<const char*> {
  using type = std::string;
};
template <>
struct Travels<char*> {
  using type = std::string;
};
template <class T>
using travels_t = typename Travels<std::decay_t<T>>::type;

// Parameters of a callable: a list, or nothing for overloaded and generic call operators.
template <class... P>
struct Parameters {
  static constexpr std::size_t count = sizeof...(P);
  /// A result cannot come back through a parameter.
  static constexpr bool by_value =
      ((!std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>)&&...);
};
struct AnyParameters {};

template <class F>
struct Signature {
  using parameters = AnyParameters;
};
template <class R, class... P>
struct Signature<R(P...)> {
  using parameters = Parameters<P...>;
};
template <class R, class... P>
struct Signature<R(P...) noexcept> : Signature<R(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...)> : Signature<R(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) const> : Signature<R(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) noexcept> : Signature<R(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) const noexcept> : Signature<R(P...)> {};
template <class F>
requires requires { &F::operator(); }
struct Signature<F> : Signature<decltype(&F::operator())> {};

template <class F>
using parameters_t = typename Signature<std::remove_pointer_t<std::decay_t<F>>>::parameters;

/// As which types the arguments travel: a future as what it holds; a value as the parameter's type, so that conversions
/// happen at the caller; as its own type where there is no list of parameters or the numbers differ (which the
/// callability check reports).
template <class Arg, class Param>
using encoded_as_t =
    std::conditional_t<is_future<Arg>, typename FutureValue<std::remove_cvref_t<Arg>>::type, travels_t<Param>>;

template <class List, class ArgList>
struct EncodedTypes;
template <class List, class... Args>
struct EncodedTypes<List, std::tuple<Args...>> {
  using type = std::tuple<encoded_as_t<Args, Args>...>;
};
template <class... P, class... Args>
requires(sizeof...(P) == sizeof...(Args)) struct EncodedTypes<Parameters<P...>, std::tuple<Args...>> {
  using type = std::tuple<encoded_as_t<Args, P>...>;
};
template <class Callable, class... Args>
using encoded_t = typename EncodedTypes<parameters_t<Callable>, std::tuple<Args...>>::type;

template <class Callable>
constexpr bool takes_values() {
  if constexpr (std::is_same_v<parameters_t<Callable>, AnyParameters>) {
    return true;
  } else {
    return parameters_t<Callable>::by_value;
  }
}

template <class Tuple>
struct AllSerialisable;
template <class... T>
struct AllSerialisable<std::tuple<T...>> : std::bool_constant<(Serialisable<T> && ...)> {};

/// The arguments from `arguments[first...]` as a tuple.
template <class... T>
Result<std::tuple<T...>> decode_arguments(std::span<const Bytes> arguments, std::size_t first, std::tuple<T...>*) {
  if (arguments.size() != first + sizeof...(T)) {
    return fail(ErrorKind::invalid, "a call with " + std::to_string(arguments.size()) + " arguments where " +
                                        std::to_string(first + sizeof...(T)) + " are expected");
  }
  std::tuple<T...> values;
  Error error;
  std::size_t index = first;
  const auto decode = [&](auto& value) {
    auto decoded = from_bytes<std::remove_cvref_t<decltype(value)>>(arguments[index],
                                                                    "argument " + std::to_string(index - first + 1));
    ++index;
    if (decoded) {
      value = *std::move(decoded);
      return true;
    }
    error = std::move(decoded).error();
    return false;
  };
  const bool ok = std::apply([&](auto&... value) { return (decode(value) && ...); }, values);
  if (!ok) return tl::unexpected(std::move(error));
  return values;
}

template <class Call>
Result<void> keep_result(Invocation& invocation, Call&& call) {
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
  } else {
    invocation.result = to_bytes<std::remove_cvref_t<decltype(call())>>(call());
  }
  return {};
}

/// Function pointers: argument 0 is the function's FunctionRef. Callable types without state: argument 0 is empty.
template <class F, class Encoded>
Result<void> run_function(Invocation& invocation) {
  if (invocation.arguments.empty()) return fail(ErrorKind::invalid, "a call without its first part");
  auto values = decode_arguments(invocation.arguments, 1, static_cast<Encoded*>(nullptr));
  if (!values) return tl::unexpected(std::move(values).error());
  if constexpr (std::is_pointer_v<F>) {
    auto address = from_bytes<FunctionRef>(invocation.arguments[0], "a function's name").and_then(resolve);
    if (!address) return tl::unexpected(std::move(address).error());
    const auto function = reinterpret_cast<F>(*address);
    return keep_result(invocation, [&]() -> decltype(auto) { return std::apply(function, *std::move(values)); });
  } else {
    return keep_result(invocation, [&]() -> decltype(auto) { return std::apply(F{}, *std::move(values)); });
  }
}

/// Argument 0 is the method's MemberRef; T is the actor's class, Method may belong to a base of it.
template <class T, class Method, class Encoded>
Result<void> run_method(Invocation& invocation) {
  if (invocation.arguments.empty() || invocation.object == nullptr) {
    return fail(ErrorKind::invalid, "a method call without method or object");
  }
  auto values = decode_arguments(invocation.arguments, 1, static_cast<Encoded*>(nullptr));
  if (!values) return tl::unexpected(std::move(values).error());
  auto method = from_bytes<MemberRef>(invocation.arguments[0], "a method's name").and_then(resolve_as<Method>);
  if (!method) return tl::unexpected(std::move(method).error());
  return keep_result(invocation, [&]() -> decltype(auto) {
    return std::apply(
        [&](auto&&... value) -> decltype(auto) {
          return std::invoke(*method, static_cast<T*>(invocation.object), std::forward<decltype(value)>(value)...);
        },
        *std::move(values));
  });
}

template <class T, class Encoded>
Result<void> run_constructor(Invocation& invocation) {
  auto values = decode_arguments(invocation.arguments, 0, static_cast<Encoded*>(nullptr));
  if (!values) return tl::unexpected(std::move(values).error());
  invocation.created = std::apply(
      [](auto&&... value) { return std::make_shared<T>(std::forward<decltype(value)>(value)...); }, *std::move(values));
  return {};
}

}  // namespace actors
}  // namespace paceline
