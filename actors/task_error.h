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
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace paceline
