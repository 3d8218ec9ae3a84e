#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::actors {

/// A `paceline` that this process has started and talks to: it reads and writes lines.
class Tool {
 public:
  /// `paceline WORDS...`, of the program beside `executable` (ours), in PATH, or where it was installed. In a session
  /// of its own: Ctrl-C is ours. What it has to say to people goes to our stderr. `not_found`: why there is none.
  static Result<Tool> start(const std::string& executable, std::vector<std::string> words);

  Tool(Tool&& other) noexcept;
  Tool& operator=(Tool&&) = delete;
  /// Ends its stdin, at which it ends, and waits for that.
  ~Tool();

  /// What it writes next, without the line's end; shorter if it ends before.
  std::string read_line();

 private:
  Tool(pid_t pid, int in, int out) : pid_(pid), in_(in), out_(out) {}

  pid_t pid_ = -1;
  int in_ = -1;   ///< Its stdin.
  int out_ = -1;  ///< Its stdout.
};

}  // namespace paceline::actors
