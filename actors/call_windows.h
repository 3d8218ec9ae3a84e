#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/transport/transport.h"

namespace paceline::actors {

/// How much of this process's calls is under way to each actor. What is beyond a window waits here, in order, in the
/// caller's own memory, until results have made room: an actor that is slow, stopped or not there yet fills nobody
/// else's queues. Sans-I/O; the client guards it.
///
///   offer -> under way (sent, no result yet) -> on_result, which may let calls go that were kept
///         \-> kept ------------------------------^
class CallWindows {
 public:
  struct Options {
    std::size_t calls = 1024;                             ///< Under way to one actor.
    std::size_t bytes = std::size_t{32} << 20;            ///< The same; a larger call goes alone.
    std::size_t kept_bytes_max = std::size_t{256} << 20;  ///< Of all actors. The caller asks has_room() first.
  };

  explicit CallWindows(Options options) : options_(options) {}

  /// False: a caller that can wait should wait for a result first.
  bool has_room() const { return kept_bytes_ < options_.kept_bytes_max; }
  /// The call, if it may leave now; else it is kept.
  std::optional<transport::Frame> offer(ActorId actor, transport::Frame call);
  /// A call of so many bytes has its result. Gives the calls that may leave now.
  std::vector<transport::Frame> on_result(ActorId actor, std::size_t bytes);
  /// The actor is dead: what is kept for it is dropped, and the caller's to fail.
  void forget(ActorId actor);
  void forget_all();

 private:
  struct Window {
    std::size_t calls = 0;
    std::size_t bytes = 0;
    std::deque<transport::Frame> kept;
  };
  bool fits(const Window& window, std::size_t bytes) const {
    return window.calls == 0 || (window.calls < options_.calls && window.bytes + bytes <= options_.bytes);
  }

  Options options_;
  std::unordered_map<ActorId, Window> windows_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace paceline::actors
