#include "algorithms/cluster/process_life.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "runtime/channel/line_transport.h"
#include "runtime/link/link_transport.h"
#include "runtime/transport/zmq/zmq_transport.h"

namespace paceline::cluster {
namespace {

/// A descriptor that this process was started with; its own children get it only where they are to.
process::Fd inherited(const char* variable) {
  const char* const number = std::getenv(variable);
  process::Fd fd(number ? std::atoi(number) : -1);
  unsetenv(variable);
  if (fd && fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0) (void)fd.release();
  return fd;
}

/// As a descriptor, and blocked before any thread exists, so that no thread gets them.
Result<process::Fd> signals_to_read(bool supervises) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (supervises) sigaddset(&set, SIGCHLD);
  if (supervises) sigaddset(&set, more_nodes_signal());
  if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) return fail_errno("pthread_sigmask");
  process::Fd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return fail_errno("signalfd");
  return fd;
}

Result<process::Fd> lock_own_file(const std::string& path) {
  process::Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno("cannot open " + path);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorKind::invalid, path + " is locked: this process of the cluster runs already");
  const std::string number = std::to_string(getpid()) + "\n";
  if (ftruncate(fd.get(), 0) != 0 || ::write(fd.get(), number.data(), number.size()) < 0)
    return fail_errno("cannot write " + path);
  return fd;
}

/// How long an agent, or the head, may be silent to those that need it.
Result<Duration> lease() {
  const char* const text = std::getenv("PACELINE_LEASE");
  if (text == nullptr) return link::LinkTransport::Options{}.lease;
  char* end = nullptr;
  const double told = std::strtod(text, &end);
  if (end != text && *end == '\0' && told >= 0.5 && told <= 3600) return from_seconds(told);
  return fail(ErrorKind::invalid, "PACELINE_LEASE is '" + std::string(text) + "': use seconds from 0.5 to 3600");
}

Result<Endpoint> listen(std::unique_ptr<transport::Transport> transport, const std::string& address) {
  auto listening = transport->listen(address);
  if (!listening) return tl::unexpected(listening.error());
  return Endpoint{std::move(transport), *listening};
}

}  // namespace

Result<ProcessLife> ProcessLife::begin(const ProcessOptions& options, const std::string& name, bool supervises) {
  ProcessLife life;
  life.lock_ = inherited(kLockVariable);
  life.lifeline_ = inherited(kLifelineVariable);
  life.parent_ = getppid();
  auto signals = signals_to_read(supervises);
  if (!signals) return tl::unexpected(signals.error());
  life.signals_ = *std::move(signals);
  auto own = lock_own_file(options.directory + "/" + name + ".pid");
  if (!own) return tl::unexpected(own.error());
  life.own_ = *std::move(own);
  return life;
}

Result<void> ProcessLife::watch(EventLoop& loop, Told told) {
  if (lifeline_) PACELINE_TRY(loop.watch(lifeline_.get(), [stop = told.stop] { stop(0); }));  // At its end.
  return loop.watch(signals_.get(), [fd = signals_.get(), told = std::move(told)] {
    signalfd_siginfo signal{};
    while (::read(fd, &signal, sizeof signal) == sizeof signal) {
      const auto number = static_cast<int>(signal.ssi_signo);
      if (number == more_nodes_signal()) {
        told.more_nodes(signal.ssi_int);
      } else if (number == SIGCHLD) {
        told.child();
      } else {
        return told.stop(number);
      }
    }
  });
}

int more_nodes_signal() { return SIGRTMIN; }

bool ProcessLife::orphaned() const { return getppid() != parent_; }

Result<Endpoint> open_endpoint(const std::string& name, const std::string& address) {
  transport::ZmqOptions options;
  options.self = name;
  auto below = transport::ZmqTransport::create(std::move(options));
  if (!below) return tl::unexpected(below.error());
  auto transport = channel::LineTransport::beside(*std::move(below), name);
  if (!transport) return tl::unexpected(transport.error());
  return listen(*std::move(transport), address);
}

Result<Endpoint> open_link_endpoint(const std::string& name, const std::string& address,
                                    std::optional<transport::ClusterKeys> keys) {
  const auto within = lease();
  if (!within) return tl::unexpected(within.error());
  transport::ZmqOptions options;
  options.self = name;
  options.links = true;
  options.keys = std::move(keys);
  auto transport = transport::ZmqTransport::create(std::move(options));
  if (!transport) return tl::unexpected(transport.error());
  link::LinkTransport::Options link;
  link.lease = *within;
  link.has_pulse = true;
  return listen(std::make_unique<link::LinkTransport>(*std::move(transport), std::move(link)), address);
}

std::string head_address(const std::string& directory) { return "ipc://" + directory + "/head.sock"; }
std::string keys_path(const std::string& directory) { return directory + "/keys"; }

}  // namespace paceline::cluster
