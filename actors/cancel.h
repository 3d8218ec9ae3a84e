#pragma once

#include <stop_token>

#include "actors/future.h"

namespace paceline {

/// How a task is cancelled.
struct CancelOptions {
  bool force = false;  ///< If it runs, its worker is ended. Not for calls of actors.
};

/// What cancel() found.
enum class Cancelled {
  ended,  ///< It had not begun, and will not: its future has ended, with an error of kind `cancelled`.
  told,   ///< It is with a worker. If it has not begun it will not; if it runs it is told so, and its future ends, with
          ///< an error of kind `cancelled`, when it has returned (by force: when its worker has ended).
  done,   ///< It was over: its future has its result, or another error.
  already,  ///< Its future had ended as cancelled.
};

namespace actors {
Cancelled cancel(const PendingResultPtr& result, const CancelOptions& options);
/// Of what the calling thread runs from here on.
void set_stop_token(std::stop_token token);
}  // namespace actors

/// A task or a call that nobody wants any more. It is not run again, whatever its retries are. Of a future that then()
/// gave only the function is cancelled. Never an error, but TaskError of kind `invalid` for a call of an actor by
/// force, and for an empty future.
template <class T>
Cancelled cancel(const Future<T>& future, const CancelOptions& options = {}) {
  return actors::cancel(future.pending(), options);
}

/// In a task or a method, on its own thread: whether it was cancelled, and should return, whatever it returns. False
/// elsewhere.
bool cancelled();
/// The same as a token, for what waits or runs on other threads.
std::stop_token stop_token();

}  // namespace paceline
