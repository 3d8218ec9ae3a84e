#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::cli {

/// How a child is started. Descriptors other than 0, 1, 2 and `inherit` are close-on-exec everywhere in this program.
struct Spawn {
  std::vector<std::string> command{};                            ///< command[0]: path, or a name to be found in PATH.
  std::vector<std::pair<std::string, std::string>> variables{};  ///< Added to the environment.
  std::vector<int> inherit{};                                    ///< Kept open across the exec, under the same numbers.
  std::string output{};                                          ///< File for stdout and stderr; empty: ours.
  bool errors_only = false;                                      ///< `output` takes stderr only.
  bool own_session = false;                                      ///< Ctrl-C does not reach it.
  int signal_at_our_end = 0;                                     ///< Sent to it when this thread ends; 0: none.
};

/// `not_found` where the program cannot be executed.
Result<pid_t> spawn(const Spawn& what);

/// How a child ended: `code` is the exit status, or 128 + the signal's number.
struct Ended {
  int code = 0;
  int signal = 0;
};
/// "exit status 3" or "killed by signal 11 (Segmentation fault)".
std::string to_string(const Ended& ended);

/// Waits for it; calls `on_wait` with the time since the start about five times a second. Interrupts (SIGINT, SIGTERM)
/// that another process sent to us are passed on to the child; those of the terminal reach it anyway.
Result<Ended> wait_for(pid_t child, const std::function<void(std::chrono::duration<double>)>& on_wait = nullptr);

/// spawn() and wait_for() without a moment between them in which an interrupt would end us instead of the child.
Result<Ended> run_child(const Spawn& what, const std::function<void(std::chrono::duration<double>)>& on_wait = nullptr);

/// SIGTERM, then SIGKILL after `grace`; reaps it.
void end_child(pid_t child, std::chrono::milliseconds grace);

/// The last `lines` lines of a file; none if there is no file.
std::deque<std::string> last_lines(const std::string& path, int lines);
/// The same as one text, indented, for error messages.
std::string tail_of(const std::string& path, int lines);

}  // namespace paceline::cli
