#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace paceline::process {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// The `NAME=value` block for exec: `inherited` with `changes` applied in order (the last one of a name wins).
std::vector<std::string> merge_environment(std::vector<std::string> inherited, const Environment& changes);

/// What a process that forks torch workers is started with: one BLAS and one OpenMP thread (a child of a process in
/// which a parallel region ran with more hangs), and glibc's allocator set to keep and reuse large blocks, in huge
/// pages. Settings in `user_tunables` (the user's own GLIBC_TUNABLES, "" for none) win over ours.
Environment fork_server_environment(std::string_view user_tunables);

struct SpawnOptions {
  std::string executable;         ///< Absolute path.
  std::vector<std::string> args;  ///< argv[1..].
  std::vector<std::string> env;   ///< From merge_environment().
  std::string directory;          ///< Where it works; empty: where this process does.
  std::string log_path;           ///< stdout and stderr are appended; created with 0600. Empty: ours.
  int inherited_fd = -1;          ///< Is kInheritedFd in the program; nothing else above stderr is open there,
  std::vector<int> kept{};        ///< unless these are, under the same numbers (and whatever is not close-on-exec).
  std::string called{};           ///< argv[0]; empty: the executable.
  bool own_session = true;
};
inline constexpr int kInheritedFd = 3;

/// Starts a program, stdin from /dev/null, default signal dispositions, none blocked. Safe in a
/// process with threads. Failures of exec are seen here: `not_found`, `invalid`.
Result<pid_t> spawn(const SpawnOptions& options);

}  // namespace paceline::process
