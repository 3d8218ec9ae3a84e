#pragma once

#include <type_traits>
#include <utility>

#include "runtime/base/result.h"

namespace paceline {

/// In a catch block: what was thrown, as an error. `overloaded` where memory was short, else `invalid`.
Error thrown_error();

/// Calls `body`, which returns void or Result<void>; what it throws becomes an error. Every entrance of a process that
/// serves others (a message, a worker's packet, a deadline) goes through one: what fails is what came in, not the
/// process.
template <class Body>
Result<void> contained(Body&& body) noexcept {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Body>>) {
      std::forward<Body>(body)();
      return {};
    } else {
      return std::forward<Body>(body)();
    }
  } catch (...) {
    return tl::unexpected(thrown_error());
  }
}

}  // namespace paceline
