#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "actors/sent_calls.h"
#include "runtime/base/ids.h"
#include "runtime/transport/transport.h"

namespace paceline::actors {

/// How much of this process's calls is under way to each actor. What is beyond a window waits here, in order, in the
/// caller's own memory, until results have made room: an actor that is slow, stopped or not there yet fills nobody
/// else's queues. Sans-I/O; the client guards it.
///
///   add -> kept -> next -> under way (sent, no result yet) -> on_result, after which next may have more
///
/// Calls go through the agent or over a line (runtime/channel/lines.h). Before the next one goes another way than those
/// before it, these have to have arrived, so that it overtakes none: a fence is sent behind them, which is answered as
/// soon as it is there, however long they run. (Where they may be sent again over the line, that is not enough: they
/// have to have their results.)
///
/// What a line has been given to an actor that may be started again is remembered. When its process dies with the line,
/// nothing more leaves until the agent has said what became of the actor: on_line_lost, then on_restart (or forget).
/// What is sent again then goes before all that was kept.
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
    TaskId task{};
    int resent = 0;      ///< How often before.
    bool fence = false;  ///< `call` and `task` are to be filled in: then add_fence().
  };

  explicit CallWindows(Options options) : options_(options) {}

  /// False: a caller that can wait should wait for a result first.
  bool has_room() const { return kept_bytes_ < options_.kept_bytes_max; }
  void add(ActorId actor, TaskId task, transport::Frame call);
  /// The oldest call that is kept, if it may leave now, or the fence that has to leave before it.
  std::optional<Leaving> next(ActorId actor);
  /// It leaves: a call like others, until it has its result, is put back, or is sent again.
  void add_fence(ActorId actor, const Leaving& leaving);
  /// It could not leave after all: it is the oldest that is kept, again.
  void put_back(ActorId actor, Leaving leaving);
  /// It leaves no more; false: it has left.
  bool drop(ActorId actor, TaskId task);
  /// It has left over a line.
  void on_sent(ActorId actor, Leaving leaving);
  /// A call of so many bytes that went this way has its result.
  void on_result(ActorId actor, TaskId task, std::size_t bytes, Way way);

  /// From here on small calls may go over a line, or not any more.
  void set_line(ActorId actor, bool open);
  /// The actor may be started again: what leaves over the line is remembered.
  void set_rule(ActorId actor, RestartRule rule);
  /// The line of such an actor has ended, and its process did not take the last `untaken` calls.
  void on_line_lost(ActorId actor, std::size_t untaken);
  /// It is started again. Returns the calls under way that nobody knows the fate of, and that are not sent again: each
  /// is the caller's to fail, and has its result with that.
  std::vector<TaskId> on_restart(ActorId actor);
  /// Whether calls are under way over a line.
  bool on_line(ActorId actor) const;
  /// Calls that have left for it and have no result.
  std::size_t under_way(ActorId actor) const;
  /// The actor is dead: what is kept for it is dropped, and the caller's to fail.
  void forget(ActorId actor);
  void forget_all();

 private:
  struct Kept {
    TaskId task;
    transport::Frame call;
    int resent = 0;
  };
  struct Window {
    std::size_t calls = 0;
    std::size_t by_line = 0;  ///< Of them.
    std::size_t bytes = 0;
    Way way = Way::agent;         ///< Of the last one that left.
    std::optional<TaskId> fence;  ///< Behind it.
    bool arrived = false;         ///< It has been answered.
    bool line = false;            ///< There is one.
    bool held = false;            ///< Nobody knows yet what became of the actor.
    std::deque<Kept> kept;
    std::optional<RestartRule> rule;
    SentCalls<transport::Frame> sent;  ///< By the line, where there is a rule.
  };
  void take_back(Window& window, std::vector<SentCalls<transport::Frame>::Sent> again);
  bool fits(const Window& window, std::size_t bytes) const;
  static bool may_turn(const Window& window);
  static void leave(Window& window, Way way, std::size_t bytes);
  static void come_back(Window& window, Way way, std::size_t bytes);

  Options options_;
  std::unordered_map<ActorId, Window> windows_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace paceline::actors
