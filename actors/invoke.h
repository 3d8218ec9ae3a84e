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

#include "actors/block.h"
#include "actors/callable.h"
#include "actors/callee_name.h"
#include "actors/durable/durable_home.h"
#include "actors/function_ref.h"
#include "actors/serialise.h"

namespace paceline {

template <class T>
class Future;
template <class T>
class Handle;
template <class T>
class Async;
template <class T>
class Generator;
template <class T>
class Stream;

namespace actors {

template <class T>
class AsyncCall;

/// A method that has begun, and goes on later on the thread that began it. Ended where it is by its destructor.
class UnfinishedCall {
 public:
  virtual ~UnfinishedCall() = default;
  virtual bool done() const = 0;
  /// Once it is done; throws what the method threw.
  virtual Bytes result() = 0;
  /// `then` is called when it is done, and must not end it.
  virtual void on_done(std::function<void()> then) = 0;
};

/// Is told who is called, before that begins.
class CallWatch {
 public:
  virtual void begins(const CalleeKind& kind, const Bytes& first, std::string_view build) = 0;

 protected:
  ~CallWatch() = default;
};

/// Where the values of a generator go.
class ValueSink {
 public:
  virtual ~ValueSink() = default;
  /// Waits for room. False: nobody wants more of them. `invalid`: it is too large.
  virtual Result<bool> give(Bytes value) = 0;
};

/// What a thunk is given and gives. Argument 0 names the callee where it is a run-time value (a pointer), the others
/// are the caller's.
struct Invocation {
  void* object = nullptr;  ///< Methods: the actor's instance.
  std::span<const Bytes> arguments;
  std::shared_ptr<void> created;  ///< Constructors: the new instance.
  Bytes result;
  std::string_view build;  ///< Of the object that holds the thunk: a callee's name without one is of the same.
  std::unique_ptr<UnfinishedCall> unfinished{};  ///< Coroutine methods: instead of the result.
  CalleeName name = nullptr;                     ///< Of what is called, from argument 0; for errors.
  ValueSink* values = nullptr;                   ///< Whoever called wants a stream.
  CallWatch* watch = nullptr;                    ///< May be null.

  /// `arguments` are not empty.
  void calls(const CalleeKind& kind) {
    name = kind.name;
    if (watch != nullptr) watch->begins(kind, arguments.front(), build);
  }
};
/// Decodes the arguments and calls. `invalid` where they do not decode; what the user's code throws passes through.
using Thunk = Result<void> (*)(Invocation&);

/// What a Wrapper<T> is of; anything else is of itself.
template <template <class> class Wrapper, class T>
struct Unwrapped {
  static constexpr bool was_wrapped = false;
  using type = T;
};
template <template <class> class Wrapper, class T>
struct Unwrapped<Wrapper, Wrapper<T>> {
  static constexpr bool was_wrapped = true;
  using type = T;
};
template <class T>
using FutureValue = Unwrapped<Future, std::remove_cvref_t<T>>;
template <class T>
inline constexpr bool is_future = FutureValue<T>::was_wrapped;

template <class T>
using AsyncValue = Unwrapped<Async, std::remove_cvref_t<T>>;
template <class T>
inline constexpr bool is_async = AsyncValue<T>::was_wrapped;

template <class T>
using GeneratorValue = Unwrapped<Generator, std::remove_cvref_t<T>>;
template <class T>
inline constexpr bool is_generator = GeneratorValue<T>::was_wrapped;

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
/// What a function reads through a span is copied once, into memory of the callee's.
template <class T>
requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) struct Travels<std::span<const T>> {
  using type = Block<T>;
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

/// Without the first one.
template <class List>
struct TailOf {
  using type = AnyParameters;
};
template <class First, class... P>
struct TailOf<Parameters<First, P...>> {
  using type = Parameters<P...>;
};

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
using encoded_as_t = std::conditional_t<is_future<Arg>, typename FutureValue<Arg>::type, travels_t<Param>>;

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

template <class Tuple, class... Args>
struct Convertible : std::false_type {};
template <class... Encoded, class... Args>
requires(sizeof...(Encoded) == sizeof...(Args)) struct Convertible<std::tuple<Encoded...>, Args...>
    : std::bool_constant<((is_future<Args> || std::is_convertible_v<Args, Encoded> ||
                           std::is_constructible_v<Encoded, Args>)&&...)> {
};

/// An argument, as the type as which it travels.
template <class Encoded, class Arg>
Bytes bytes_as(Arg&& argument) {
  const Encoded value = static_cast<Encoded>(std::forward<Arg>(argument));
  return to_bytes<Encoded>(value);
}

template <class... Encoded, class... Args>
void append_bytes(std::vector<Bytes>& bytes, std::tuple<Encoded...>*, Args&&... arguments) {
  (bytes.push_back(bytes_as<Encoded>(std::forward<Args>(arguments))), ...);
}

/// What run_callable takes, of values that are there.
template <class Encoded, class F, class... Args>
Result<std::vector<Bytes>> encode_call(const F& callable, Args&&... arguments) {
  auto first = encode_callable<F>(callable);
  if (!first) return tl::unexpected(std::move(first).error());
  std::vector<Bytes> bytes{*std::move(first)};
  append_bytes(bytes, static_cast<Encoded*>(nullptr), std::forward<Args>(arguments)...);
  return bytes;
}

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

/// Values travel as optionals: what is asked for behind the last one has none. The result is how many there were.
template <class T>
Result<void> give_values(Invocation& invocation, T generator) {
  using Value = typename GeneratorValue<T>::type;
  if (invocation.values == nullptr)
    return fail(ErrorKind::invalid, "a generator was called by who wants no stream of values");
  std::uint64_t count = 0;
  while (Value* const value = generator.next()) {
    const auto wanted = invocation.values->give(to_bytes(std::optional<Value>(std::move(*value))));
    if (!wanted) return tl::unexpected(wanted.error());
    if (!*wanted) break;
    ++count;
  }
  invocation.result = to_bytes(count);
  return {};
}

/// A coroutine is done when it returns here: nothing else could run meanwhile.
template <class Call>
Result<void> keep_result(Invocation& invocation, Call&& call) {
  using R = std::remove_cvref_t<decltype(call())>;
  if constexpr (is_async<R>) {
    return keep_result(invocation, [&] { return call().get(); });
  } else if constexpr (is_generator<R>) {
    return give_values(invocation, call());
  } else if constexpr (std::is_void_v<R>) {
    call();
  } else {
    invocation.result = to_bytes<R>(call());
  }
  return {};
}

/// Argument 0 is the callable (encode_callable). `before`: what the callable is given before the arguments; it is of
/// the process that runs it.
template <class F, class Encoded, class... Before>
Result<void> run_callable(Invocation& invocation, Before&... before) {
  if (invocation.arguments.empty()) return fail(ErrorKind::invalid, "a call without its first part");
  invocation.calls(kCallable<F>);
  auto values = decode_arguments(invocation.arguments, 1, static_cast<Encoded*>(nullptr));
  if (!values) return tl::unexpected(std::move(values).error());
  auto callable = decode_callable<F>(invocation.arguments[0]);
  if (!callable) return tl::unexpected(std::move(callable).error());
  return keep_result(invocation, [&]() -> decltype(auto) {
    return std::apply(
        [&](auto&&... value) -> decltype(auto) {
          return std::invoke(*callable, before..., std::forward<decltype(value)>(value)...);
        },
        *std::move(values));
  });
}

template <class F, class Encoded>
Result<void> run_function(Invocation& invocation) {
  return run_callable<F, Encoded>(invocation);
}

/// The callable's first parameter is a T, the invocation's object: that of the process that runs it.
template <class T, class F, class Encoded>
Result<void> run_function_with(Invocation& invocation) {
  if (invocation.object == nullptr) return fail(ErrorKind::invalid, "a call without its object");
  return run_callable<F, Encoded>(invocation, *static_cast<T*>(invocation.object));
}

/// Argument 0 is the method's MemberRef; T is the actor's class, Method may belong to a base of it.
template <class T, class Method, class Encoded>
Result<void> run_method(Invocation& invocation) {
  if (invocation.arguments.empty() || invocation.object == nullptr) {
    return fail(ErrorKind::invalid, "a method call without method or object");
  }
  invocation.calls(kMethodOf<T>);
  auto values = decode_arguments(invocation.arguments, 1, static_cast<Encoded*>(nullptr));
  if (!values) return tl::unexpected(std::move(values).error());
  auto name = from_bytes<MemberRef>(invocation.arguments[0], "a method's name");
  if (!name) return tl::unexpected(std::move(name).error());
  if (name->function.build.empty()) name->function.build = invocation.build;
  auto method = resolve_as<Method>(*name);
  if (!method) return tl::unexpected(std::move(method).error());
  const auto call = [&](auto& arguments) -> decltype(auto) {
    return std::apply(
        [&](auto&&... value) -> decltype(auto) {
          return std::invoke(*method, static_cast<T*>(invocation.object), std::forward<decltype(value)>(value)...);
        },
        std::move(arguments));
  };
  using R = std::remove_cvref_t<decltype(call(*values))>;
  if constexpr (is_async<R>) {
    if (durable_home() != nullptr && durable_home()->is_in_use())
      return fail(
          ErrorKind::invalid,
          "a coroutine method of an actor with durable state: other calls would run in the middle of it, so that "
          "what it changes could not count as one: give the state to an actor without coroutines");
    auto kept = std::make_shared<std::remove_cvref_t<decltype(*values)>>(*std::move(values));
    invocation.unfinished = std::make_unique<AsyncCall<typename AsyncValue<R>::type>>(kept, call);
    return {};
  } else {
    return keep_result(invocation, [&]() -> decltype(auto) { return call(*values); });
  }
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
