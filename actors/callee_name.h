#pragma once

#include <string>
#include <type_traits>
#include <typeinfo>

#include "actors/callable.h"
#include "actors/function_ref.h"
#include "actors/serialise.h"
#include "runtime/base/demangled.h"

namespace paceline::actors {

/// What C++ calls a function, from the symbols of the object that holds it: "square(int)"; empty where it has none.
/// Slow where it has not been asked for before; for errors.
std::string function_name(const FunctionRef& function);
/// Without "(anonymous namespace)::".
std::string plain_name(std::string name);

/// How the callee of a call is called, from the call's first argument and the build of its thunk; empty: unknown.
using CalleeName = std::string (*)(const Bytes& first, const std::string& build);

template <class F>
std::string name_of_callable(const Bytes& first, const std::string&) {
  if constexpr (std::is_pointer_v<F>) {
    const auto function = from_bytes<FunctionRef>(first, "a function's name");
    return function ? function_name(*function) : std::string();
  } else {
    return plain_name(demangled(typeid(F).name()));
  }
}

template <class T>
std::string name_of_method(const Bytes& first, const std::string& build) {
  auto method = from_bytes<MemberRef>(first, "a method's name");
  if (!method || method->is_virtual) return "a method of " + plain_name(demangled(typeid(T).name()));
  if (method->function.build.empty()) method->function.build = build;
  return function_name(method->function);
}

}  // namespace paceline::actors
