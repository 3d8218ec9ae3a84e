#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace paceline {

/// Kinds are chosen by what the caller can do about it, not by where it arose.
enum class ErrorKind {
  invalid,       ///< The request itself is wrong: mend it and ask again.
  not_found,     ///< The thing named does not exist.
  stale,         ///< Overtaken by a newer version or epoch: drop it.
  overloaded,    ///< A bounded queue is full: retry later.
  disconnected,  ///< The peer is gone.
  infeasible,    ///< No resources on this cluster can satisfy it.
  timed_out,     ///< The deadline passed.
  cancelled,     ///< Somebody asked for it to stop.
  internal,      ///< A defect of ours or an unexpected answer of the system.
};

std::string_view to_string(ErrorKind kind);

struct Causes;  // actors/causes.h

/// What went wrong. `text` is one line that names the thing, the cause and the mend.
struct Error {
  ErrorKind kind = ErrorKind::internal;
  std::string text;
  std::shared_ptr<const Causes> causes{};  ///< Of what tasks and actors threw: what led to it. Others have none.
};

template <class T>
using Result = tl::expected<T, Error>;

/// Shorthand for `return fail(ErrorKind::invalid, "...")` in a function that returns Result<T>.
inline tl::unexpected<Error> fail(ErrorKind kind, std::string text) {
  return tl::unexpected<Error>(Error{kind, std::move(text)});
}

/// An Error of kind internal with the text of `errno` appended: "open /x: No such file or directory".
tl::unexpected<Error> fail_errno(std::string_view what);

}  // namespace paceline

/// Evaluates `expr` (a Result<void>); returns its error from the enclosing function.
#define PACELINE_TRY(expr)                                                                                      \
  do {                                                                                                          \
    if (auto paceline_try_ = (expr); !paceline_try_) return ::tl::unexpected(std::move(paceline_try_).error()); \
  } while (false)
