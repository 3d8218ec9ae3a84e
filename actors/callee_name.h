#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>

#include "actors/callable.h"
#include "actors/function_ref.h"
#include "actors/serialise.h"
#include "actors/spans/name_kind.h"
#include "runtime/base/demangled.h"

namespace paceline::actors {

/// What C++ calls a function, from the symbols of the object that holds it: "square(int)"; empty where it has none.
/// Slow where it has not been asked for before; for errors.
std::string function_name(const FunctionRef& function);
/// Without "(anonymous namespace)::".
std::string plain_name(std::string name);

/// Who is called, before anybody has looked up what that is called: quickly made, and to be read elsewhere.
struct CalleeRef {
  NameKind kind = NameKind::text;
  std::string text{};  ///< Empty: unknown.
};
CalleeRef ref_of_function(const FunctionRef& function);

/// How the callee of a call is called, from the call's first argument and the build of its thunk; empty: unknown.
using CalleeName = std::string (*)(const Bytes& first, const std::string& build);
using CalleeOf = CalleeRef (*)(const Bytes& first, std::string_view build);

template <class F>
std::string name_of_callable(const Bytes& first, const std::string&) {
  if constexpr (std::is_pointer_v<F>) {
    const auto function = from_bytes<FunctionRef>(first, "a function's name");
    return function ? function_name(*function) : std::string();
  } else {
    return plain_name(demangled(typeid(F).name()));
  }
}

template <class F>
CalleeRef ref_of_callable(const Bytes& first, std::string_view) {
  if constexpr (std::is_pointer_v<F>) {
    const auto function = from_bytes<FunctionRef>(first, "a function's name");
    return function ? ref_of_function(*function) : CalleeRef();
  } else {
    return {NameKind::type, typeid(F).name()};
  }
}

template <class T>
std::string name_of_method(const Bytes& first, const std::string& build) {
  auto method = from_bytes<MemberRef>(first, "a method's name");
  if (!method || method->is_virtual) return "a method of " + plain_name(demangled(typeid(T).name()));
  if (method->function.build.empty()) method->function.build = build;
  return function_name(method->function);
}

template <class T>
CalleeRef ref_of_method(const Bytes& first, std::string_view build) {
  auto method = from_bytes<MemberRef>(first, "a method's name");
  if (!method || method->is_virtual) return {NameKind::method, typeid(T).name()};
  if (method->function.build.empty()) method->function.build = build;
  return ref_of_function(method->function);
}

/// What a thunk calls. One object a kind: its address stands for it.
struct CalleeKind {
  CalleeName name;
  CalleeOf callee;
  bool by_first;  ///< Argument 0 says who it is.
};
template <class F>
inline constexpr CalleeKind kCallable{&name_of_callable<F>, &ref_of_callable<F>, std::is_pointer_v<F>};
template <class T>
inline constexpr CalleeKind kMethodOf{&name_of_method<T>, &ref_of_method<T>, true};

}  // namespace paceline::actors
