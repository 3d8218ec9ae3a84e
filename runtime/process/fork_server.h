#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/instant.h"
#include "runtime/base/result.h"
#include "runtime/process/exit.h"
#include "runtime/process/fd.h"
#include "runtime/process/fd_passing.h"

namespace paceline::process {

/// What a forked child is told; everything else it learns from its agent.
struct ForkRequest {
  WorkerId worker{};
  std::string log_path{};                                  ///< stdout and stderr go here (appended; created with 0600).
  std::vector<std::pair<std::string, std::string>> env{};  ///< Set in the child; at most 256.
};

/// The child's side of a fork: who it is, and its Unix socket to the agent (carries descriptors; hang-up = agent gone).
struct Child {
  WorkerId worker{};
  Fd agent_socket{};
};

/// Runs in the script's executable, before `main`, where the environment names a fork server (kForkServerEnv; `socket`
/// is the agent's): single-threaded, forks at the agent's request, reaps, reports exits. When the agent's end of the
/// socket closes it kills its children, stopped ones too, and what they had started, also in sessions of their own, and
/// ends. Where no worker of it lives, nothing that one left behind does. Before each fork it checks that
/// /proc/self/task has one entry, and refuses otherwise. Never returns in the server. Returns in each child, with its
/// identity, in a session of its own, output appended to its log (stdout by lines), stdin from /dev/null, no signal
/// blocked, and none of the server's descriptors. A child's duty: watch_agent() of supervise.h. `warm_up` is called
/// once before the first fork (libtorch: run OpenMP with one thread, touch the allocator); what it throws ends the
/// server, with the text in its log.
Child run_fork_server(Fd socket, const std::function<void()>& warm_up);

/// Set by the agent for the fork server's exec: the number of its socket.
inline constexpr const char* kForkServerEnv = "PACELINE_FORK_SERVER_FD";

/// The agent's side: one fork server a job and node. Owned by the agent's control loop; no threads of its own; nothing
/// here waits, except the destructor for what it has killed. Makes the process a child subreaper, so that the workers
/// of a server that died become its children: they go on, and are reaped here. The server is then started anew and gets
/// the requests that were not answered. The process must not reap with waitpid(-1).
///
///   starting --ready--> serving --server died--> starting
///       |                  |
///       +------------------+--3 failed lives in a row, not ready in time, or retire()--> over --workers gone--> empty
///
/// A life failed if it ended before ready, or without a fork although requests were unanswered or within a second. What
/// is over forks nobody any more; the workers that it has go on, and their ends are told.
class ForkServer {
 public:
  struct Options {
    std::string executable;         ///< Absolute path.
    std::vector<std::string> args;  ///< argv[1..].
    /// "NAME=value"; empty: what this process has. BLAS, OpenMP and allocator settings are always set.
    std::vector<std::string> env;
    std::string log_path{};                             ///< The server's own output (appended).
    Duration ready_timeout = std::chrono::seconds(60);  ///< From exec to ready, warm-up included.
    std::string directory{};                            ///< Where it and its workers work; empty: where we do.
  };
  /// What happened since the last call.
  struct Event {
    enum class Kind { forked, fork_refused, exited, server_restarted, server_failed };
    Kind kind;
    WorkerId worker{};
    pid_t pid = -1;
    Fd pidfd{};   ///< forked.
    Fd socket{};  ///< forked: the agent's end of the child's Unix socket (close-on-exec).
    Exit exit{};  ///< exited.
    /// fork_refused: why, for this worker. server_failed: why; unanswered requests are dropped, workers go on.
    std::string text{};
  };

  /// Does not wait for the server: requests may follow at once. `not_found`, `invalid`: no such executable, or none
  /// that can run here.
  static Result<ForkServer> start(Options options);
  ForkServer(ForkServer&&) noexcept;
  ForkServer& operator=(ForkServer&&) noexcept;
  /// Ends the server and all its workers, with all that they had started, and reaps them (waits at most 5 s for those
  /// that the kernel does not let die; not at all once it is_empty()).
  ~ForkServer();

  /// Answered by one event: forked or fork_refused. Bound: the caller's, who knows how many workers it may have.
  /// `invalid`: that worker runs already, or the request is too large; `disconnected`: it is over, and why.
  Result<void> fork(const ForkRequest& request);
  /// Ends the server, not its workers, without waiting: call events() until it is_empty(). Unanswered requests are
  /// dropped.
  void retire();
  /// It is over, its process has ended, and so have all workers.
  bool is_empty() const;
  /// Readable (poll, epoll) when events() is to be called, which may then still have nothing to tell.
  int descriptor() const;
  std::vector<Event> events();
  /// The server's; -1 once it is over.
  pid_t pid() const;

 private:
  struct State;
  explicit ForkServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace paceline::process
