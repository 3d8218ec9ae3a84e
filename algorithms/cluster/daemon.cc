#include "algorithms/cluster/daemon.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "algorithms/cluster/agent.h"
#include "algorithms/cluster/head.h"
#include "runtime/base/steady_now.h"
#include "runtime/observe/atomic_file.h"
#include "runtime/process/descriptor_limit.h"
#include "runtime/transport/zmq/zmq_transport.h"

extern char** environ;

namespace paceline::cluster {
namespace {

namespace fs = std::filesystem;
constexpr const char* kLoopback = "tcp://127.0.0.1:*";

/// SIGTERM and SIGINT as a descriptor; blocked before any thread exists, so that no other thread gets them.
Result<int> stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) return fail_errno("pthread_sigmask");
  const int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return fail_errno("signalfd");
  return fd;
}

Result<pid_t> start_agent(const DaemonOptions& options, std::int32_t node) {
  const std::string exe = fs::read_symlink("/proc/self/exe").string();
  const std::vector<std::string> args{exe,           "daemon",
                                      "--directory", options.directory,
                                      "--name",      options.name,
                                      "--nodes",     std::to_string(options.nodes),
                                      "--node",      std::to_string(node)};
  std::vector<char*> argv;
  for (const auto& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, exe.c_str(), nullptr, nullptr, argv.data(), environ);
  if (error != 0)
    return fail(ErrorKind::internal, "cannot start agent " + std::to_string(node) + ": " + std::strerror(error));
  return pid;
}

struct Endpoint {
  std::unique_ptr<transport::Transport> transport;
  std::string address;
};

Result<Endpoint> open_endpoint(const std::string& name, const std::string& address,
                               std::optional<transport::ClusterKeys> keys) {
  transport::ZmqOptions options;
  options.self = name;
  options.keys = std::move(keys);
  auto transport = transport::ZmqTransport::create(std::move(options));
  if (!transport) return tl::unexpected(transport.error());
  auto listening = (*transport)->listen(address);
  if (!listening) return tl::unexpected(listening.error());
  return Endpoint{std::move(*transport), *listening};
}

Result<transport::ClusterKeys> cluster_keys(const DaemonOptions& options) {
  const fs::path path = fs::path(options.directory) / "keys";
  if (options.node != 0) return transport::read_keys(path);
  auto keys = transport::make_cluster_keys();
  if (!keys) return keys;
  PACELINE_TRY(transport::write_keys(path, *keys));
  return keys;
}

Result<std::unique_ptr<Agent>> open_agent(const DaemonOptions& options, EventLoop& loop,
                                          const transport::ClusterKeys& keys, const std::string& head_address) {
  const std::string node = std::to_string(options.node);
  auto local = open_endpoint("agent", "ipc://" + options.directory + "/agent-" + node + ".sock", std::nullopt);
  if (!local) return tl::unexpected(local.error());
  auto peers = open_endpoint(agent_peer(NodeId{options.node}), kLoopback, keys);
  if (!peers) return tl::unexpected(peers.error());
  PACELINE_TRY(peers->transport->connect("head", head_address));
  auto averager = collective::Averager::create();
  if (!averager) return tl::unexpected(averager.error());
  auto log = observe::Log::open(options.directory + "/agent-" + node + ".log", "agent " + node);
  if (!log) return tl::unexpected(log.error());
  Agent::Options agent;
  agent.node = NodeId{options.node};
  agent.nodes = options.nodes;
  agent.cpus = static_cast<std::int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  agent.descriptors = process::raise_descriptor_limit();
  agent.directory = options.directory;
  agent.local_address = local->address;
  agent.peer_address = peers->address;
  auto opened = std::make_unique<Agent>(agent, loop, std::move(local->transport), std::move(peers->transport),
                                        std::move(*averager), std::move(*log));
  PACELINE_TRY(opened->start());
  return opened;
}

/// Leaves the lock file, which the next cluster of this name takes over.
void empty_directory(const std::string& directory) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored))
    if (entry.path().filename() != "lock") fs::remove_all(entry.path(), ignored);
}

}  // namespace

Result<void> run_daemon(const DaemonOptions& options) {
  const bool first = options.node == 0;
  // The directory's lock is this process's alone: workers must not keep it.
  if (const char* lock = std::getenv("PACELINE_LOCK_FD")) fcntl(std::atoi(lock), F_SETFD, FD_CLOEXEC);
  unsetenv("PACELINE_LOCK_FD");
  if (!first) prctl(PR_SET_PDEATHSIG, SIGKILL);  // The starter's main thread lives as long as the cluster.
  auto signals = stop_signals();
  if (!signals) return tl::unexpected(signals.error());
  auto loop = EventLoop::create();
  if (!loop) return tl::unexpected(loop.error());
  bool running = true;
  PACELINE_TRY(loop->watch(*signals, [&] { running = false; }));

  const auto keys = cluster_keys(options);
  if (!keys) return tl::unexpected(keys.error());
  std::unique_ptr<Head> head;
  std::string head_address;
  if (first) {
    auto endpoint = open_endpoint("head", kLoopback, *keys);
    if (!endpoint) return tl::unexpected(endpoint.error());
    head_address = endpoint->address;
    PACELINE_TRY(observe::write_json_atomic(options.directory + "/head", head_address + "\n"));
    head = std::make_unique<Head>(Head::Options{options.name, options.nodes}, std::move(endpoint->transport));
    PACELINE_TRY(loop->watch(head->descriptor(), [&] { head->poll(steady_now()); }));
  } else {
    std::ifstream(options.directory + "/head") >> head_address;
  }
  auto agent = open_agent(options, *loop, *keys, head_address);
  if (!agent) return tl::unexpected(agent.error());
  std::vector<pid_t> others;
  for (std::int32_t node = 1; first && node < options.nodes; ++node) {
    auto pid = start_agent(options, node);
    if (!pid) return tl::unexpected(pid.error());
    others.push_back(*pid);
  }

  bool announced = false;
  while (running && !(*agent)->orphaned() && !(head && head->down())) {
    const Instant now = steady_now();
    (*agent)->tick(now);
    auto deadline = (*agent)->next_deadline();
    if (head) {
      head->tick(now);
      if (const auto due = head->next_deadline(); due && (!deadline || *due < *deadline)) deadline = due;
      if (!announced && head->ready()) {
        announced = true;
        PACELINE_TRY(
            observe::write_json_atomic(options.directory + "/ready", "{\"pid\": " + std::to_string(getpid()) + "}\n"));
      }
    }
    PACELINE_TRY(
        loop->run_once(deadline ? std::max<Duration>(Duration::zero(), *deadline - steady_now()) : Duration(-1)));
  }
  if (head && head->down()) {  // The answer to `down` leaves through agent 0 first.
    (*agent)->tick(steady_now());
    const Instant until = steady_now() + std::chrono::milliseconds(50);
    while (steady_now() < until) {
      PACELINE_TRY(loop->run_once(std::chrono::milliseconds(5)));
      (*agent)->tick(steady_now());
    }
  }
  agent->reset();
  for (const pid_t pid : others) kill(pid, SIGTERM);
  for (const pid_t pid : others) waitpid(pid, nullptr, 0);
  head.reset();
  close(*signals);
  if (first) empty_directory(options.directory);
  return {};
}

}  // namespace paceline::cluster
