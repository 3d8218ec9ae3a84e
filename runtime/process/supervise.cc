#include "runtime/process/supervise.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace paceline::process {

Result<void> kill_worker(BorrowedFd pidfd, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0) == 0) return {};
  if (errno == ESRCH) return fail(ErrorKind::not_found, "the process to signal has ended");
  return fail_errno("pidfd_send_signal");
}

bool agent_gone(BorrowedFd agent_socket) {
  pollfd state{agent_socket.get(), POLLRDHUP, 0};
  int ready;
  do ready = ::poll(&state, 1, 0);
  while (ready < 0 && errno == EINTR);
  return ready > 0 && (state.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL));
}

void watch_agent(BorrowedFd agent_socket) {
  if (agent_gone(agent_socket)) ::_exit(kExitAgentGone);
}

}  // namespace paceline::process
