#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>

#include "actors/function_ref.h"
#include "actors/serialise.h"

namespace paceline::actors {

/// Callables that can run in another process: functions, lambdas that capture nothing, and those that capture plain
/// values by copy (numbers, enumerations, arrays and structs of such: what is copied by copying its bytes). g++ 12
/// forgets that a lambda is trivially copyable once it was asked whether it can be assigned, hence the two that this
/// consists of.
template <class F>
concept Travelling = std::is_pointer_v<F> ||(std::is_empty_v<F>&& std::is_default_constructible_v<F>) ||
                     (std::is_class_v<F> && std::is_trivially_copy_constructible_v<F> &&
                      std::is_trivially_destructible_v<F>);

/// `invalid` where the captures hold an address of something in this process: a reference or a pointer, which the
/// compiler lets through and which means nothing elsewhere.
Result<void> check_captures(std::span<const std::byte> captures);

/// A function as its name, captures as their bytes, a lambda without captures as nothing.
template <Travelling F>
Result<Bytes> encode_callable(const F& callable) {
  if constexpr (std::is_pointer_v<F>) {
    return name_of(callable).map([](const FunctionRef& name) { return to_bytes(name); });
  } else if constexpr (std::is_empty_v<F>) {
    return Bytes{};
  } else {
    Bytes bytes(sizeof(F));
    std::memcpy(bytes.data(), &callable, sizeof(F));
    PACELINE_TRY(check_captures(bytes));
    return bytes;
  }
}

template <Travelling F>
Result<F> decode_callable(const Bytes& bytes) {
  if constexpr (std::is_pointer_v<F>) {
    return from_bytes<FunctionRef>(bytes, "a function's name").and_then(resolve).map([](void* address) {
      return reinterpret_cast<F>(address);
    });
  } else if constexpr (std::is_empty_v<F>) {
    return F{};
  } else {
    if (bytes.size() != sizeof(F)) return fail(ErrorKind::invalid, "a lambda's captures have another size");
    alignas(F) std::byte raw[sizeof(F)];
    std::memcpy(raw, bytes.data(), sizeof raw);
    return *std::launder(reinterpret_cast<const F*>(raw));
  }
}

}  // namespace paceline::actors
