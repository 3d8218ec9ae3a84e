#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "actors/task_error.h"
#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace paceline {

/// What an Error carries of how it came about. Bounds: actors::kLinksMax and actors::kCausesBytesMax; the middle of
/// what is longer is left out and counted.
struct Causes {
  std::vector<Cause> links;  ///< What was waited for first, the first cause last. Not empty.
  std::size_t left_out = 0;  ///< Links in the middle.
  std::string first{};       ///< The line that told of the first cause; empty: it is the error's text.
};

namespace actors {

inline constexpr std::size_t kLinksMax = 16;
inline constexpr std::size_t kCausesBytesMax = std::size_t{64} << 10;  ///< Text of one error, all in all.
inline constexpr std::size_t kThrownMax = std::size_t{16} << 10;       ///< Of that, what was thrown.

/// Where something runs, or has ended.
struct Place {
  int node = -1;
  std::string worker{};  ///< "worker 3"
  std::string log{};
};
Place place_of(WorkerId worker, std::string log = {});
/// "worker 3 on node 0, log /run/worker-3.log"
std::string to_string(const Place& place);

/// A chain of one link: `what` failed at `place` with `text`, which `error` says in one line with all else.
Error began(Error error, const Place& place, std::string what, std::string text);
/// An error as it leaves what ran at `place`, `whose` for people. One that began there is told so; one that came from
/// elsewhere has been passed on.
Error leaving(Error error, std::string what, const Place& place, const std::string& whose);
/// The error of what did not run, since `why` ("argument 1 failed") with this error.
Error stopped_by(const Error& error, std::string what, const Place& place, const std::string& why);
/// The error of who caught `inner` and threw `text` because of it.
Error thrown_over(const Error& inner, const std::string& text);
/// With `before` in front of it ("element 3: "), which is no part of what was thrown.
Error prefixed(Error error, const std::string& before);

/// What a task of this name is called in errors: "task 'x'"; empty: nothing.
std::string task_called(const std::string& name);
/// "square(int) of task 'x'", either of which may be empty.
std::string whats_of(const std::string& function, const std::string& whose);
/// The error of a task of this name, of which it says nothing yet.
Error of_task(Error error, const std::string& name);

/// What another process says of an error, which may be anything, within the bounds.
Error bounded(Error error, Causes causes);

}  // namespace actors
}  // namespace paceline
