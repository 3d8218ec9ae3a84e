#pragma once

#include "runtime/base/result.h"
#include "runtime/process/exit.h"
#include "runtime/process/fd.h"

namespace paceline::process {

/// Sends `signal` to exactly the process that `pidfd` names, never to one that got its number later. `not_found`: it
/// has ended and was reaped.
Result<void> kill_worker(BorrowedFd pidfd, int signal);

/// True once the agent's end of a worker's socket is closed: the agent has died or let go of this worker. Does not wait
/// and takes no data from the socket.
bool agent_gone(BorrowedFd agent_socket);

/// A worker's duty: its I/O thread has `agent_socket` in its poll set (any events; POLLHUP is always reported) and
/// calls this whenever poll names the socket. Returns at once while the agent lives; else ends the process with
/// _exit(kExitAgentGone), whatever its other threads do. The fork server kills the workers that it knows of, stopped
/// ones too; this is for the time in which there is none.
void watch_agent(BorrowedFd agent_socket);
inline constexpr int kExitAgentGone = 83;

}  // namespace paceline::process
