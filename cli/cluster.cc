#include "cli/cluster.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "algorithms/cluster/processes.h"
#include "cli/process.h"

namespace paceline::cli {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

constexpr auto kStopMax = 3s;

struct Started {
  fs::path directory;
  pid_t supervisor;
  OwnedFd lifeline;
};

/// Waits for DIRECTORY/ready. The watch is made before the supervisor starts, so no wake-up is lost.
Result<void> wait_until_ready(const fs::path& directory, pid_t supervisor, const OwnedFd& watch) {
  const OwnedFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, supervisor, 0)));
  const auto deadline = std::chrono::steady_clock::now() + kStartMax;
  while (!fs::exists(directory / "ready")) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left <= 0ms) return fail(ErrorKind::timed_out, "the cluster did not start within 15 s");
    pollfd watched[] = {{watch.get(), POLLIN, 0}, {pidfd.get(), POLLIN, 0}};
    if (::poll(watched, 2, static_cast<int>(left.count())) < 0 && errno != EINTR) return fail_errno("poll");
    if (watched[1].revents != 0) return fail(ErrorKind::disconnected, "the cluster ended while it started");
    char events[4096];
    if (watched[0].revents != 0 && ::read(watch.get(), events, sizeof events) < 0) return fail_errno("inotify");
  }
  return {};
}

Result<Started> start(const std::string& name, const ClusterSize& size, bool ends_with_us) {
  auto root = RuntimeRoot::open();
  if (!root) return tl::unexpected(root.error());
  auto claimed = claim_directory(*root, name);
  if (!claimed) return tl::unexpected(claimed.error());
  const fs::path directory = claimed->path;
  const OwnedFd watch(::inotify_init1(IN_CLOEXEC));
  if (::inotify_add_watch(watch.get(), directory.c_str(), IN_CREATE | IN_MOVED_TO) < 0) return fail_errno("inotify");

  OwnedFd lifeline, theirs;
  if (int ends[2]; ends_with_us) {
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe2");
    theirs = OwnedFd(ends[0]);
    lifeline = OwnedFd(ends[1]);
  }
  const std::string log = directory / "cluster.log";
  // The supervisor inherits the lock, and with it the folder, and passes both descriptors on to its own children only.
  std::error_code unknown;
  const fs::path self = fs::read_symlink("/proc/self/exe", unknown);  // As `ps` shows it.
  Spawn what{.command = {fs::exists(self, unknown) ? self.string() : "/proc/self/exe", "supervise", "--directory",
                         directory, "--name", name, "--nodes", std::to_string(size.nodes), "--cpus",
                         std::to_string(size.cpus), "--memory", std::to_string(size.memory)},
             .variables = {{"PACELINE_LOCK_FD", std::to_string(claimed->lock.get())}},
             .inherit = {claimed->lock.get()},
             .output = log,
             .own_session = true};
  if (ends_with_us) {
    what.variables.emplace_back("PACELINE_LIFELINE_FD", std::to_string(theirs.get()));
    what.inherit.push_back(theirs.get());
  }
  auto supervisor = spawn(what);
  if (!supervisor) return tl::unexpected(supervisor.error());
  if (const auto ready = wait_until_ready(directory, *supervisor, watch); !ready) {
    end_child(*supervisor, kStopMax);
    std::string said = tail_of(log, 10);
    while (!said.empty() && said.back() == '\n') said.pop_back();
    claimed->lock = OwnedFd();
    sweep_stale(*root);
    return fail(ready.error().kind, ready.error().text + (said.empty() ? " without a word" : "; it said:\n" + said));
  }
  return Started{directory, *supervisor, std::move(lifeline)};
}

}  // namespace

EmbeddedCluster::EmbeddedCluster(EmbeddedCluster&& other) noexcept
    : directory_(std::move(other.directory_)),
      supervisor_(std::exchange(other.supervisor_, -1)),
      lifeline_(std::move(other.lifeline_)) {}

EmbeddedCluster::~EmbeddedCluster() {
  if (supervisor_ < 0) return;
  const auto cluster = running_cluster(directory_);
  lifeline_ = OwnedFd();
  end_child(supervisor_, kStopMax);
  if (cluster) end_processes(directory_, *cluster);
  if (const auto root = RuntimeRoot::open()) sweep_stale(*root);
}

Result<EmbeddedCluster> start_embedded(const ClusterSize& size) {
  auto started = start("run-" + std::to_string(::getpid()), size, true);
  if (!started) return tl::unexpected(started.error());
  return EmbeddedCluster(started->directory, started->supervisor, std::move(started->lifeline));
}

Result<Place> find_place(std::optional<std::int64_t> nodes, std::int64_t otherwise) {
  const auto root = RuntimeRoot::open();
  if (!root) return tl::unexpected(root.error());
  sweep_stale(*root);
  const bool named = std::getenv("PACELINE_CLUSTER") && *std::getenv("PACELINE_CLUSTER");
  auto running = find_cluster(*root, "");
  if (running && nodes) {
    return fail(ErrorKind::invalid, "--nodes is for a cluster started for the run, but '" +
                                        running->filename().string() +
                                        "' is up: leave --nodes out, or stop that one with `paceline down`");
  }
  if (running) return Place{*running, nullptr};
  if (named) return tl::unexpected(running.error());
  auto own = start_embedded({.nodes = nodes.value_or(otherwise)});
  if (!own) return tl::unexpected(own.error());
  const fs::path directory = own->directory();
  return Place{directory, std::make_unique<EmbeddedCluster>(std::move(*own))};
}

Result<fs::path> start_detached(const std::string& name, const ClusterSize& size) {
  auto started = start(name, size, false);
  if (!started) return tl::unexpected(started.error());
  return started->directory;
}

Result<void> start_more_nodes(const fs::path& directory, std::int32_t more) {
  const auto supervisor = supervisor_of(directory);
  if (!supervisor)
    return fail(ErrorKind::disconnected, "the supervisor of cluster '" + directory.filename().string() +
                                             "' was killed, and nobody else starts its agents: `paceline down`, then "
                                             "`paceline up`");
  sigval value{};
  value.sival_int = more;
  if (::sigqueue(*supervisor, cluster::more_nodes_signal(), value) != 0)
    return fail_errno("cannot reach the cluster's supervisor");
  return {};
}

Result<void> wait_until_down(const fs::path& directory, const ClusterId& cluster, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (running_cluster(directory) == cluster) {
    if (std::chrono::steady_clock::now() > deadline) {
      return fail(ErrorKind::timed_out, "the cluster in " + directory.string() + " is still up: look at " +
                                            (directory / "cluster.log").string());
    }
    ::poll(nullptr, 0, 5);
  }
  if (const auto root = RuntimeRoot::open()) sweep_stale(*root);
  return {};
}

void end_processes(const fs::path& directory, const ClusterId& cluster) {
  const auto send = [&](int signal, bool all) {
    if (running_cluster(directory) != cluster) return;
    for (const pid_t process : processes_of(directory)) {
      ::kill(process, signal);
      if (!all) return;
    }
  };
  send(SIGTERM, false);
  if (wait_until_down(directory, cluster, kStopMax)) return;
  send(SIGKILL, true);
  (void)wait_until_down(directory, cluster, kStopMax);
}

}  // namespace paceline::cli
