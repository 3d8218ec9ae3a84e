#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/result.h"

namespace paceline::process {

/// How a worker process ended.
struct Exit {
  bool signalled = false;
  int code = 0;  ///< Exit status, or the signal's number.
};
/// "exit status 3" or "killed by SIGSEGV (segmentation fault)".
std::string to_string(const Exit& exit);

/// What a forked child is told; everything else it learns from its agent.
struct ForkRequest {
  WorkerId worker;
  std::string log_path;                                    ///< stdout and stderr go here (appended).
  std::vector<std::pair<std::string, std::string>> env;  ///< Set in the child.
};

/// The child's side of a fork: who it is, and its Unix socket to the agent (carries descriptors; hang-up = agent gone).
struct Child {
  WorkerId worker;
  int agent_socket = -1;
};

/// Runs in the script's executable, before `main`, where the environment names a fork server: single-threaded, forks at the
/// agent's request, reaps, reports exits. Kills its children and ends when the agent's end of the socket closes. Checks before each fork that
/// /proc/self/task has one entry. Returns in the parent never (it exits), in each child with its identity, in a session of
/// its own and with output redirected.
/// `warm_up` is called once before the first fork (libtorch: run OpenMP with one thread, touch the allocator).
Child run_fork_server(int socket, const std::function<void()>& warm_up);

/// Set by the agent for the fork server's exec: the number of its socket.
inline constexpr const char* kForkServerEnv = "PACELINE_FORK_SERVER_FD";

/// The agent's side: one fork server a job and node. Owned by the agent's control loop; no threads of its own. Restarts a dead
/// server (workers go on: the agent is their subreaper).
class ForkServer {
 public:
  struct Options {
    std::string executable;                                  ///< Absolute path.
    std::vector<std::string> args;                           ///< argv[1..].
    std::vector<std::pair<std::string, std::string>> env;    ///< Added; BLAS, OpenMP and allocator settings are always set.
    std::string log_path;                                    ///< The server's own output.
  };
  /// What happened since the last call.
  struct Event {
    enum class Kind { forked, exited, server_restarted, server_failed };
    Kind kind;
    WorkerId worker;
    pid_t pid = -1;
    int pidfd = -1;   ///< forked: the agent's to close.
    int socket = -1;  ///< forked: the agent's end of the child's Unix socket; the agent's to close.
    Exit exit;        ///< exited.
    std::string text; ///< server_failed: why (three restarts in a row failed, or the executable is no actor script).
  };

  static Result<ForkServer> start(Options options);
  ForkServer(ForkServer&&) noexcept;
  ForkServer& operator=(ForkServer&&) noexcept;
  /// Kills the server, which kills its children.
  ~ForkServer();

  Result<void> fork(const ForkRequest& request);
  /// Readable when events() has something.
  int descriptor() const;
  std::vector<Event> events();
  pid_t pid() const;

 private:
  struct State;
  explicit ForkServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Sends `bytes` with descriptors over a Unix socket (SOCK_SEQPACKET), all or nothing.
Result<void> send_with_fds(int socket, std::string_view bytes, const std::vector<int>& fds);
/// One packet with its descriptors (close-on-exec, the caller's). `disconnected` when the peer hung up; `timed_out`.
struct Packet { std::string bytes; std::vector<int> fds; };
Result<Packet> receive_with_fds(int socket, int timeout_ms);

}  // namespace paceline::process
