#pragma once

#include <stdexcept>
#include <string>

#include "runtime/base/result.h"

namespace paceline {

/// What a task, a method or a constructor threw, or why it could not run. what() is one line with worker, node and
/// cause.
class TaskError : public std::runtime_error {
 public:
  explicit TaskError(const Error& error) : std::runtime_error(error.text), kind_(error.kind) {}
  /// `invalid` for what a task or a method threw, and for a wrong use; `disconnected` where a process is gone;
  /// `infeasible` where no node has what a task asks for; `timed_out` where a result was not there in time; `cancelled`
  /// where nobody wanted it any more.
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace paceline
