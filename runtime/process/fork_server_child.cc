#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "runtime/process/fd.h"
#include "runtime/process/fork_protocol.h"
#include "runtime/process/fork_server.h"
#include "runtime/process/supervise.h"

namespace paceline::process {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr int kThreadsMax = 2;  // ThreadSanitizer may have one of its own, and handles fork.
#else
constexpr int kThreadsMax = 1;
#endif

constexpr int kRoundsMax = 1000;    // Of a millisecond each; who does not die by then is stuck in the kernel.
constexpr int kServerDeathMs = 50;  // A dying process closes its descriptors within microseconds of each other.

[[noreturn]] void end_server(const std::string& why) {
  std::cout.flush();
  std::fflush(nullptr);
  std::fprintf(stderr, "fork server: %s\n", why.c_str());
  ::_exit(1);
}

std::string errno_text(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

int count_threads() {
  DIR* tasks = ::opendir("/proc/self/task");
  if (!tasks) return -1;
  int count = 0;
  while (const dirent* entry = ::readdir(tasks))
    if (entry->d_name[0] != '.') ++count;
  ::closedir(tasks);
  return count;
}

std::set<pid_t> children_of_this_process() {
  std::set<pid_t> children;
  DIR* processes = ::opendir("/proc");
  if (!processes) return children;
  while (const dirent* entry = ::readdir(processes)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string stat;
    std::getline(file, stat);
    const auto name_end = stat.rfind(')');  // "PID (NAME) STATE PARENT ..."
    if (name_end == std::string::npos || name_end + 4 >= stat.size()) continue;
    if (std::atoi(stat.c_str() + name_end + 4) == ::getpid()) children.insert(pid);
  }
  ::closedir(processes);
  return children;
}

/// The server's state; a child leaves it behind.
class Server {
 public:
  Server(Fd socket, Fd signals, const sigset_t& mask)
      : socket_(std::move(socket)), signals_(std::move(signals)), mask_(mask), own_(children_of_this_process()) {
    send({.kind = ForkMessage::Kind::ready});
  }

  Child run() {
    for (;;) {
      pollfd waiting[] = {{socket_.get(), POLLIN | POLLRDHUP, 0}, {signals_.get(), POLLIN, 0}};
      if (::poll(waiting, 2, -1) < 0) {
        if (errno == EINTR) continue;
        end_server(errno_text("poll"));
      }
      if (waiting[0].revents & (POLLHUP | POLLRDHUP | POLLERR)) end_with_agent();
      if (waiting[1].revents) reap();
      if (waiting[0].revents & POLLIN)
        if (auto child = serve()) return *std::move(child);
    }
  }

 private:
  struct Adopted {
    Fd pidfd;
  };

  [[noreturn]] void end_with_agent() {
    for (const auto& [pid, worker] : children_) {
      ::kill(-pid, SIGKILL);  // What the worker started, too; not reaped yet, so the number is still its own.
      ::kill(pid, SIGKILL);
    }
    for (const Adopted& former : adopted_) (void)kill_worker(former.pidfd, SIGKILL);
    children_.clear();
    // What they leave behind in sessions of their own becomes ours with their ends, and what that leaves with its end.
    for (int round = 0; round < kRoundsMax && end_left_behind(); ++round) {
      ::usleep(1000);
      siginfo_t info{};
      while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) info = {};
    }
    ::_exit(0);
  }

  /// Kills what is ours and no worker: it was left behind by one, and no living one can have. False: there is nothing.
  bool end_left_behind() const {
    bool any = false;
    for (const pid_t pid : children_of_this_process()) {
      if (own_.contains(pid)) continue;
      ::kill(pid, SIGKILL);
      any = true;
    }
    return any;
  }

  void send(const ForkMessage& message, const std::vector<BorrowedFd>& fds = {}) {
    const auto bytes = encode(message);
    if (!bytes) end_server(bytes.error().text);
    if (const auto sent = send_with_fds(socket_, *bytes, fds); !sent) {
      if (sent.error().kind == ErrorKind::disconnected) end_with_agent();
      end_server(sent.error().text);
    }
  }

  /// Reports before it reaps: a server killed in between leaves a zombie that the agent, knowing its pidfd, reaps.
  void reap() {
    signalfd_siginfo drained[16];
    while (::read(signals_.get(), drained, sizeof drained) > 0) {
    }
    for (;;) {
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0) break;
      if (const auto known = children_.find(info.si_pid); known != children_.end()) {
        ::kill(-info.si_pid, SIGKILL);  // Whatever the worker left running in its session.
        send({.kind = ForkMessage::Kind::exited,
              .worker = known->second,
              .exit = {.signalled = info.si_code != CLD_EXITED, .code = info.si_status}});
        children_.erase(known);
      }
      ::waitid(P_PID, static_cast<id_t>(info.si_pid), &info, WEXITED | WNOHANG);
    }
    if (children_.empty()) (void)end_left_behind();
  }

  std::optional<Child> serve() {
    auto packet = receive_with_fds(socket_, 0);
    if (!packet) {
      if (packet.error().kind == ErrorKind::disconnected) end_with_agent();
      if (packet.error().kind == ErrorKind::timed_out) return std::nullopt;
      end_server(packet.error().text);
    }
    const auto message = decode_fork_message(packet->bytes);
    if (!message) end_server(message.error().text);
    if (message->kind == ForkMessage::Kind::adopt && packet->fds.size() == 1) {
      std::erase_if(adopted_, [](const Adopted& former) { return !kill_worker(former.pidfd, 0); });
      adopted_.push_back({std::move(packet->fds[0])});
      return std::nullopt;
    }
    if (message->kind != ForkMessage::Kind::fork) end_server("the agent sent a message that is none for a server");
    return fork_worker(*message);
  }

  std::optional<Child> refuse(WorkerId worker, std::string why) {
    send({.kind = ForkMessage::Kind::refused, .worker = worker, .text = std::move(why)});
    return std::nullopt;
  }

  std::optional<Child> fork_worker(const ForkMessage& request) {
    if (const int threads = count_threads(); threads < 1 || threads > kThreadsMax)
      return refuse(request.worker, "the script has " + std::to_string(threads) +
                                        " threads before workers are forked from it, where only one is possible: a "
                                        "library or a global started them when it was loaded; start them "
                                        "in the worker instead (for BLAS and OpenMP the *_NUM_THREADS settings do it)");
    Fd log(::open(request.text.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!log) return refuse(request.worker, errno_text(("open log " + request.text).c_str()));
    int ends[2], go[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
      return refuse(request.worker, errno_text("socketpair"));
    Fd agent_end(ends[0]), child_end(ends[1]);
    if (::pipe2(go, O_CLOEXEC) < 0) return refuse(request.worker, errno_text("pipe"));
    Fd may_go(go[0]), let_go(go[1]);

    std::cout.flush();
    std::fflush(nullptr);  // Else the child would write it again.
    const pid_t pid = ::fork();
    if (pid < 0) return refuse(request.worker, errno_text("fork (limit on processes or memory: ulimit -u, pids.max)"));
    if (pid == 0) {
      agent_end.reset();
      let_go.reset();
      return become_worker(request, std::move(log), std::move(child_end), std::move(may_go));
    }

    children_.emplace(pid, request.worker);
    Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfd) {
      const std::string why = errno_text("pidfd_open");
      children_.erase(pid);  // `let_go` closes: the child ends.
      return refuse(request.worker, why);
    }
    send({.kind = ForkMessage::Kind::forked, .worker = request.worker, .pid = pid}, {pidfd, agent_end});
    (void)!::write(let_go.get(), "", 1);
    return std::nullopt;
  }

  Child become_worker(const ForkMessage& request, Fd log, Fd child_end, Fd may_go) {
    socket_.reset();
    signals_.reset();
    adopted_.clear();
    ::setsid();
    const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null || ::dup2(null.get(), STDIN_FILENO) < 0 || ::dup2(log.get(), STDOUT_FILENO) < 0 ||
        ::dup2(log.get(), STDERR_FILENO) < 0)
      ::_exit(1);
    static char buffer[BUFSIZ];                           // A new one: for one in use the mode would not change.
    std::setvbuf(stdout, buffer, _IOLBF, sizeof buffer);  // A worker that crashes leaves its last lines.
    // Where memory runs out the kernel is to end a worker, which can be done without, not the agent.
    if (const Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score)
      (void)!::write(score.get(), "500", 3);
    for (const auto& [name, value] : request.env) ::setenv(name.c_str(), value.c_str(), 1);
    ::signal(SIGCHLD, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);

    // Nobody runs whom the agent was not told of: it would have the same worker forked again.
    char byte;
    ssize_t got;
    do got = ::read(may_go.get(), &byte, 1);
    while (got < 0 && errno == EINTR);
    if (got != 1) {  // The server died. Before it told the agent, the agent's end of our socket dies with it.
      pollfd agent{child_end.get(), POLLRDHUP, 0};
      if (::poll(&agent, 1, kServerDeathMs) != 0) ::_exit(kExitAgentGone);
    }
    return {.worker = request.worker, .agent_socket = std::move(child_end)};
  }

  Fd socket_;
  Fd signals_;
  sigset_t mask_;
  const std::set<pid_t> own_;  // Children that the program had when it became a server.
  std::map<pid_t, WorkerId> children_;
  std::vector<Adopted> adopted_;
};

}  // namespace

Child run_fork_server(Fd socket, const std::function<void()>& warm_up) {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_TYPE, &type, &size) < 0 || type != SOCK_SEQPACKET)
    end_server(std::string(kForkServerEnv) + " names no agent's socket: it is set by an agent only, unset it");
  ::fcntl(socket.get(), F_SETFD, FD_CLOEXEC);
  ::unsetenv(kForkServerEnv);          // Programs that workers start are no fork servers.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // What a dead worker leaves behind is reaped here.

  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  sigdelset(&before, SIGCHLD);
  Fd signals(::signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) end_server(errno_text("signalfd"));

  if (warm_up) {
    try {
      warm_up();
    } catch (const std::exception& e) {
      end_server(std::string("warm-up failed: ") + e.what());
    } catch (...) {
      end_server("warm-up failed with an exception that is no std::exception");
    }
  }
  return Server(std::move(socket), std::move(signals), before).run();
}

}  // namespace paceline::process
