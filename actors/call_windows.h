#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <unordered_map>

#include "runtime/base/ids.h"
#include "runtime/transport/transport.h"

namespace paceline::actors {

/// How much of this process's calls is under way to each actor. What is beyond a window waits here, in order, in the
/// caller's own memory, until results have made room: an actor that is slow, stopped or not there yet fills nobody
/// else's queues. Sans-I/O; the client guards it.
///
///   add -> kept -> next -> under way (sent, no result yet) -> on_result, after which next may have more
///
/// Calls of one actor go one way at a time, through the agent or over a line (runtime/channel/lines.h): the next one
/// that has to go the other way waits until all that are under way have their results, so that none overtakes another.
class CallWindows {
 public:
  struct Options {
    std::size_t calls = 1024;                             ///< Under way to one actor.
    std::size_t bytes = std::size_t{32} << 20;            ///< The same; a larger call goes alone.
    std::size_t kept_bytes_max = std::size_t{256} << 20;  ///< Of all actors. The caller asks has_room() first.
    std::size_t line_bytes = std::size_t{16} << 10;       ///< Larger calls go through the agent.
  };
  enum class Way { agent, line };
  struct Leaving {
    transport::Frame call;
    Way way = Way::agent;
  };

  explicit CallWindows(Options options) : options_(options) {}

  /// False: a caller that can wait should wait for a result first.
  bool has_room() const { return kept_bytes_ < options_.kept_bytes_max; }
  void add(ActorId actor, transport::Frame call);
  /// The oldest call that is kept, if it may leave now.
  std::optional<Leaving> next(ActorId actor);
  /// It could not leave after all: it is the oldest that is kept, again.
  void put_back(ActorId actor, transport::Frame call);
  /// A call of so many bytes has its result.
  void on_result(ActorId actor, std::size_t bytes);

  /// From here on small calls may go over a line, or not any more.
  void set_line(ActorId actor, bool open);
  /// Whether calls are under way over a line.
  bool on_line(ActorId actor) const;
  /// The actor is dead: what is kept for it is dropped, and the caller's to fail.
  void forget(ActorId actor);
  void forget_all();

 private:
  struct Window {
    std::size_t calls = 0;
    std::size_t bytes = 0;
    Way way = Way::agent;  ///< Of those under way.
    bool line = false;     ///< There is one.
    std::deque<transport::Frame> kept;
  };
  bool fits(const Window& window, std::size_t bytes) const;

  Options options_;
  std::unordered_map<ActorId, Window> windows_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace paceline::actors
