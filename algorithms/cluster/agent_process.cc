#include <algorithm>
#include <csignal>
#include <fstream>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "algorithms/cluster/agent.h"
#include "algorithms/cluster/process_life.h"
#include "algorithms/cluster/processes.h"
#include "algorithms/cluster/training/peer_names.h"
#include "runtime/base/steady_now.h"
#include "runtime/channel/line_transport.h"
#include "runtime/observe/atomic_file.h"
#include "runtime/process/descriptor_limit.h"
#include "runtime/store/memory_room.h"

namespace paceline::cluster {
namespace {

constexpr const char* kLoopback = "tcp://127.0.0.1:*";
constexpr Duration kAlone = std::chrono::seconds(30);  // Without head and supervisor.
constexpr Duration kAloneLook = std::chrono::seconds(5);
constexpr Duration kDrainPatience = std::chrono::seconds(20), kAskEvery = std::chrono::seconds(1);
constexpr Duration kLastWords = std::chrono::seconds(1);  // Of workers that have left: their calls have answers still.

std::uint64_t new_incarnation() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

/// How often an agent of this node was started before; one more from here on.
Result<std::uint32_t> count_start(const std::string& path) {
  std::uint32_t starts = 0;
  std::ifstream(path) >> starts;
  PACELINE_TRY(observe::write_json_atomic(path, std::to_string(starts + 1) + "\n"));
  return starts;
}

Result<std::unique_ptr<Agent>> open_agent(const ProcessOptions& options, EventLoop& loop) {
  const std::string node = std::to_string(options.node);
  const auto keys = transport::read_keys(keys_path(options.directory));
  if (!keys) return tl::unexpected(keys.error());
  auto local = open_endpoint("agent", "ipc://" + options.directory + "/agent-" + node + ".sock");
  if (!local) return tl::unexpected(local.error());
  auto peers = open_link_endpoint(agent_peer(NodeId{options.node}), kLoopback, *keys);
  if (!peers) return tl::unexpected(peers.error());
  auto averager = collective::Averager::create();
  if (!averager) return tl::unexpected(averager.error());
  auto log = observe::Log::open(options.directory + "/agent-" + node + ".log", "agent " + node);
  if (!log) return tl::unexpected(log.error());
  const auto starts = count_start(options.directory + "/agent-" + node + ".starts");
  if (!starts) return tl::unexpected(starts.error());
  Agent::Options agent;
  agent.starts = *starts;
  agent.node = NodeId{options.node};
  agent.nodes = options.nodes;
  const auto of_machine = static_cast<std::int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  agent.cpus = options.cpus > 0 ? static_cast<std::int32_t>(options.cpus) : of_machine;
  agent.memory_limit = static_cast<std::uint64_t>(options.memory);
  agent.memory = options.memory > 0 ? agent.memory_limit : store::total_bytes();
  agent.descriptors = process::raise_descriptor_limit();
  agent.descriptors -= std::min(agent.descriptors, channel::LineTransport::listener_descriptors());
  agent.directory = options.directory;
  agent.local_address = local->address;
  agent.peer_address = peers->address;
  agent.head_address = head_address(options.directory);
  agent.incarnation = new_incarnation();
  auto opened = std::make_unique<Agent>(agent, loop, std::move(local->transport), std::move(peers->transport),
                                        std::move(*averager), std::move(*log));
  PACELINE_TRY(opened->start());
  return opened;
}

}  // namespace

Result<void> run_agent(const ProcessOptions& options) {
  auto life = ProcessLife::begin(options, "agent-" + std::to_string(options.node));
  if (!life) return tl::unexpected(life.error());
  auto loop = EventLoop::create();
  if (!loop) return tl::unexpected(loop.error());
  bool running = true;
  Result<std::unique_ptr<Agent>> agent;
  std::optional<Instant> drained;  // By when it ends, since it was told to with SIGTERM; with another one at once.
  Instant asks_again{};            // A head that was just started, or cannot reach a driver yet, does nothing.
  PACELINE_TRY(life->watch(*loop, {.stop = [&](int signal) {
    running = signal == SIGTERM && !drained && agent && *agent && (*agent)->drain();
    if (!running) return;
    drained = steady_now() + kDrainPatience;
    asks_again = steady_now() + kAskEvery;
  }}));
  agent = open_agent(options, *loop);
  if (!agent) return tl::unexpected(agent.error());

  while (running) {
    const Instant now = steady_now();
    (*agent)->tick(now);
    auto deadline = (*agent)->next_deadline();
    if (drained) {
      if (!(*agent)->trains()) drained = std::min(*drained, now + kLastWords);
      if (now >= *drained) break;
      if (now >= asks_again && (*agent)->drain()) asks_again = now + kAskEvery;
      deadline = earlier(earlier(deadline, drained), std::max(asks_again, now + kAskEvery));
    }
    if (const auto since = (*agent)->headless()) {
      if (now - *since >= kAlone && life->orphaned()) break;
      deadline = earlier(deadline, now + kAloneLook);
    }
    if ((*agent)->down() && life->orphaned()) break;  // Else it is the supervisor's to end it.
    PACELINE_TRY(
        loop->run_once(deadline ? std::max<Duration>(Duration::zero(), *deadline - steady_now()) : Duration(-1)));
  }
  return {};
}

}  // namespace paceline::cluster
