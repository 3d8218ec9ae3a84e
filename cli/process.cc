#include "cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>

#include "cli/cluster_paths.h"

namespace paceline::cli {

namespace {

constexpr int kPollMs = 200;

/// In the child, between fork and exec: async-signal-safe calls only. Returns on failure, with errno.
void become(const Spawn& what, pid_t parent, char* const* arguments, char* const* environment) {
  if (what.own_session) ::setsid();
  if (what.signal_at_our_end != 0) {
    ::prctl(PR_SET_PDEATHSIG, what.signal_at_our_end);
    if (::getppid() != parent) ::_exit(127);  // It ended before: nobody would tell us.
  }
  if (!what.output.empty()) {
    const int fd = ::open(what.output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0) return;
    if (!what.errors_only) ::dup2(fd, STDOUT_FILENO);
    ::dup2(fd, STDERR_FILENO);
    if (fd > STDERR_FILENO) ::close(fd);
  }
  for (const int fd : what.inherit) ::fcntl(fd, F_SETFD, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(arguments[0], arguments, environment);
}

Ended ended_from(int status) {
  if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

/// SIGINT and SIGTERM as a descriptor while it lives; they do not end us meanwhile.
class Interrupts {
 public:
  Interrupts() {
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &wanted, &before_);
    fd_ = OwnedFd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~Interrupts() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  int descriptor() const { return fd_.get(); }

  void pass_on(pid_t child) const {
    signalfd_siginfo info;
    while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const bool from_terminal = info.ssi_code == SI_KERNEL;
      if (!from_terminal) ::kill(child, static_cast<int>(info.ssi_signo));
    }
  }

 private:
  sigset_t before_{};
  OwnedFd fd_;
};

}  // namespace

Result<pid_t> spawn(const Spawn& what) {
  std::vector<char*> arguments;
  for (const std::string& word : what.command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  std::vector<std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : what.variables) replaced |= text.starts_with(name + "=");
    if (!replaced) variables.emplace_back(text);
  }
  for (const auto& [name, value] : what.variables) variables.push_back(name + "=" + value);
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);

  int ends[2];  // Carries errno of a failed exec; closed by a successful one.
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe");
  const OwnedFd reading(ends[0]);
  OwnedFd writing(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return fail_errno("fork");
  if (child == 0) {
    become(what, parent, arguments.data(), environment.data());
    const int code = errno;
    [[maybe_unused]] const auto sent = ::write(writing.get(), &code, sizeof code);
    ::_exit(127);
  }
  { const OwnedFd closed = std::move(writing); }
  int code = 0;
  if (::read(reading.get(), &code, sizeof code) == static_cast<ssize_t>(sizeof code)) {
    ::waitpid(child, nullptr, 0);
    return fail(ErrorKind::not_found, "cannot run " + what.command.front() + ": " + std::strerror(code));
  }
  return child;
}

std::string to_string(const Ended& ended) {
  if (ended.signal == 0) return "exit status " + std::to_string(ended.code);
  return "killed by signal " + std::to_string(ended.signal) + " (" + ::strsignal(ended.signal) + ")";
}

Result<Ended> wait_for(pid_t child, const std::function<void(std::chrono::duration<double>)>& on_wait) {
  const Interrupts interrupts;
  const OwnedFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (pidfd.get() < 0) return fail_errno("pidfd_open");
  const auto began = std::chrono::steady_clock::now();
  for (;;) {
    pollfd watched[] = {{pidfd.get(), POLLIN, 0}, {interrupts.descriptor(), POLLIN, 0}};
    if (::poll(watched, 2, on_wait ? kPollMs : -1) < 0 && errno != EINTR) return fail_errno("poll");
    if (watched[1].revents != 0) interrupts.pass_on(child);
    int status = 0;
    const pid_t reaped = ::waitpid(child, &status, WNOHANG);
    if (reaped == child) return ended_from(status);
    if (reaped < 0) return fail_errno("waitpid");
    if (on_wait) on_wait(std::chrono::steady_clock::now() - began);
  }
}

Result<Ended> run_child(const Spawn& what, const std::function<void(std::chrono::duration<double>)>& on_wait) {
  const Interrupts interrupts;  // wait_for() reads what came in meanwhile.
  Spawn ends_with_us = what;
  if (ends_with_us.signal_at_our_end == 0) ends_with_us.signal_at_our_end = SIGTERM;
  const auto child = spawn(ends_with_us);
  if (!child) return tl::unexpected(child.error());
  return wait_for(*child, on_wait);
}

void end_child(pid_t child, std::chrono::milliseconds grace) {
  const OwnedFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  ::kill(child, SIGTERM);
  pollfd watched{pidfd.get(), POLLIN, 0};
  if (::poll(&watched, 1, static_cast<int>(grace.count())) != 1) ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::deque<std::string> last_lines(const std::string& path, int lines) {
  std::ifstream in(path);
  std::deque<std::string> kept;
  for (std::string line; std::getline(in, line);) {
    kept.push_back(std::move(line));
    if (static_cast<int>(kept.size()) > lines) kept.pop_front();
  }
  return kept;
}

std::string tail_of(const std::string& path, int lines) {
  std::string text;
  for (const std::string& line : last_lines(path, lines)) text += "  " + line + "\n";
  return text;
}

}  // namespace paceline::cli
