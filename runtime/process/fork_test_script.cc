// An actor script for the tests: a fork server where the environment asks for one; its workers do what ACT says.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/process/fork_server.h"
#include "runtime/process/supervise.h"

using namespace paceline::process;

namespace {

std::string env(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// What the process is like, for the test to compare.
std::string describe(const Child& child) {
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  char stdin_path[64] = {};
  (void)!::readlink("/proc/self/fd/0", stdin_path, sizeof stdin_path - 1);
  int open_fds = 0;
  for (int fd = 3; fd < 256; ++fd) open_fds += ::fcntl(fd, F_GETFD) >= 0;
  return "worker=" + to_string(child.worker) + " leads_session=" + std::to_string(::getsid(0) == ::getpid()) +
         " stdin=" + stdin_path + " sigchld_blocked=" + std::to_string(sigismember(&mask, SIGCHLD)) +
         " open_fds=" + std::to_string(open_fds) + " blas=" + env("OPENBLAS_NUM_THREADS") + env("OMP_NUM_THREADS") +
         env("MKL_NUM_THREADS") + " tunables=" + env("GLIBC_TUNABLES") + " own=" + env("OWN") +
         " server_env=" + env(kForkServerEnv);
}

/// Answers each packet, descriptors included, until the agent hangs up.
void echo(const Child& child) {
  for (;;) {
    auto packet = receive_with_fds(child.agent_socket, -1);
    if (!packet) return watch_agent(child.agent_socket);
    (void)send_with_fds(child.agent_socket, packet->bytes, {packet->fds.begin(), packet->fds.end()});
  }
}

[[noreturn]] void act(const Child& child) {
  const std::string what = env("ACT");
  if (what == "describe") (void)send_with_fds(child.agent_socket, describe(child), {});
  if (what == "nonsense") (void)send_with_fds(child.agent_socket, "nonsense", {child.agent_socket});
  if (what == "exit") std::_Exit(std::atoi(env("CODE").c_str()));
  if (what == "crash") {
    std::printf("last words\n");  // Not flushed by hand.
    ::signal(SIGSEGV, SIG_DFL);   // A sanitizer would turn the crash into an exit.
    ::raise(SIGSEGV);
  }
  if (what == "family" || what == "daemon") {
    int is_up[2];
    char byte = 0;
    if (::pipe(is_up) != 0) std::abort();
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      if (what == "daemon") ::setsid();
      (void)!::write(is_up[1], &byte, 1);
      ::close(child.agent_socket.get());
      for (;;) ::pause();
    }
    (void)!::read(is_up[0], &byte, 1);
    (void)send_with_fds(child.agent_socket, std::to_string(grandchild), {});
  }
  echo(child);
  std::_Exit(0);
}

}  // namespace

int main() {
  const std::string socket = env(kForkServerEnv);
  if (socket.empty()) return 64;
  std::thread early;
  if (!env("THREAD_AT_LOAD").empty())
    early = std::thread([] {
      for (;;) ::pause();
    });
  const Child child = run_fork_server(Fd(std::stoi(socket)), [] {
    if (!env("BAD_WARM_UP").empty()) throw std::runtime_error("no such model file");
    std::printf("warm\n");
  });
  act(child);
}
