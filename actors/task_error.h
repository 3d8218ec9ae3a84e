#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace paceline {

class TaskError;
namespace actors {
/// A TaskError as an error that can go on to other processes.
Error carried(const TaskError& error);
}  // namespace actors

/// One of the things that failed on the way to a TaskError.
struct Cause {
  ErrorKind kind = ErrorKind::internal;  ///< As TaskError::kind() of who waited for this one.
  std::string what{};                    ///< The function or method, with its actor, as C++ writes it; empty: unknown.
  int node = -1;         ///< Where it ran; of a task that did not run, where it was asked for. -1: unknown.
  std::string worker{};  ///< Its process there; empty: unknown, or none.
  std::string log{};     ///< The path of that process's log; empty: unknown, or nothing stands in it.
  std::string text{};    ///< What was thrown, how its process ended, or why it could not run.
};

/// What a task, a method or a constructor threw, or why it could not run. what() is one line with worker, node and
/// cause. Where it failed because something else had failed (a future that is its argument, a `get()` whose TaskError
/// it let out), that is told of, back to the first cause.
class TaskError : public std::runtime_error {
 public:
  explicit TaskError(const Error& error);
  /// Of the first cause. `invalid` for what a task or a method threw, and for a wrong use; `disconnected` where a
  /// process is gone; `infeasible` where no node has what a task asks for; `timed_out` where a result was not there in
  /// time; `cancelled` where nobody wanted it any more.
  ErrorKind kind() const { return kind_; }
  /// The node of the first cause; -1: unknown.
  int node() const { return first().node; }
  /// The process of the first cause, as logs and what() name it ("worker 3"); empty: unknown.
  const std::string& worker() const { return first().worker; }
  /// The path of that process's log; empty: unknown, or nothing stands in it.
  const std::string& log() const { return first().log; }
  /// What was thrown there, or how its process ended, without where.
  const std::string& cause() const { return first().text; }
  /// All that failed, from what was waited for to the first cause: at least one, at most 16.
  const std::vector<Cause>& causes() const;
  /// How many are left out of causes(), in the middle of a longer chain.
  std::size_t causes_left_out() const;

 private:
  friend Error actors::carried(const TaskError& error);
  const Cause& first() const { return causes().back(); }

  ErrorKind kind_;
  std::shared_ptr<const Causes> causes_;
};

}  // namespace paceline
