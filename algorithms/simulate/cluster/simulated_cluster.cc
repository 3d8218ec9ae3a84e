#include "algorithms/simulate/cluster/simulated_cluster.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "algorithms/cluster/training/peer_names.h"
#include "algorithms/simulate/cluster/must.h"
#include "runtime/link/link_transport.h"

namespace paceline::simulate {
namespace {

std::string local_address(NodeId node) { return "sim:local-" + to_string(node); }

}  // namespace

SimulatedCluster::SimulatedCluster(Options options) : options_(options), network_(options.seed) {
  network_.set_faults(faults());
  start_head();
  const std::int32_t nodes = std::exchange(options_.nodes, 0);
  while (options_.nodes < nodes) add_node();
}

void SimulatedCluster::add_node() {
  auto& node = nodes_.emplace_back();
  node.id = NodeId{options_.nodes++};
  node.local = std::make_unique<transport::SimNetwork>(options_.seed + 1 + static_cast<std::uint64_t>(node.id.value));
  node.local->set_faults({.latency = std::chrono::microseconds(20)});
  node.local->advance(now());
  start_agent(node);
  for (auto& driver : drivers_) driver->know_nodes(options_.nodes);
}

SimulatedCluster::~SimulatedCluster() {
  for (auto& node : nodes_) node.agent.reset();
}

std::unique_ptr<transport::Transport> SimulatedCluster::link_endpoint(const std::string& name) {
  link::LinkTransport::Options options;
  options.incarnation = ++incarnations_;
  options.clock = &network_;
  auto endpoint = std::make_unique<link::LinkTransport>(network_.endpoint(name), options);
  (void)must(endpoint->listen("sim:" + name));
  return endpoint;
}

void SimulatedCluster::start_head() {
  cluster::Head::Options options{"simulated", options_.nodes, now(), store_};
  options.wall = [this] {
    return cluster::ClusterState::Wall(
        std::chrono::duration_cast<cluster::ClusterState::Wall::duration>(now().time_since_epoch()));
  };
  head_.process = std::make_unique<cluster::Head>(std::move(options), link_endpoint("head"));
}

void SimulatedCluster::start_agent(Node& node) {
  auto local = node.local->endpoint("agent");
  (void)must(local->listen(local_address(node.id)));
  node.loop = std::make_unique<EventLoop>(must(EventLoop::create()));
  cluster::Agent::Options options;
  options.node = node.id;
  options.nodes = options_.nodes;
  options.cpus = 4;
  options.directory = "/simulated";
  options.local_address = local_address(node.id);
  options.peer_address = "sim:" + cluster::agent_peer(node.id);
  options.head_address = "sim:head";
  options.starts = node.starts++;
  options.clock = &network_;
  options.messages_a_turn = options_.messages_a_turn;
  options.has_threads = false;
  options.workers = [this, &node](cluster::Workers::Listener listener) {
    SimulatedWorkers::Node its{node.id,
                               *node.local,
                               local_address(node.id),
                               network_,
                               options_.call_takes,
                               [this](const std::string& finding) { findings_.push_back(finding); },
                               [this](Trained trained) { trained_.push_back(std::move(trained)); }};
    auto workers =
        std::make_unique<SimulatedWorkers>(std::move(its), std::move(listener), [&node] { node.workers = nullptr; });
    node.workers = workers.get();
    return workers;
  };
  auto peers = link_endpoint(cluster::agent_peer(node.id));
  options.incarnation = incarnations_;
  node.agent = std::make_unique<cluster::Agent>(options, *node.loop, std::move(local), std::move(peers),
                                                must(collective::Averager::create(1)),
                                                must(observe::Log::open("/dev/null", "agent")));
  must(node.agent->start());
}

// Faults

void SimulatedCluster::kill_head() {
  if (!head_.process) return;
  network_.kill("head");
  head_ = {nullptr, now() + options_.start_takes, false};
}

void SimulatedCluster::kill_agent(NodeId id) {
  auto& node = node_of(id);
  if (!node.agent) return;
  network_.kill(cluster::agent_peer(id));
  for (auto& driver : drivers_)
    if (driver->node() == id && !driver->is_gone()) driver->lose_agent();
  node.local->kill("agent");
  node.agent.reset();
  node.loop.reset();
  node.frozen = false;
  node.starts_at = now() + options_.start_takes;
}

bool SimulatedCluster::kill_worker(NodeId node, std::uint64_t which) {
  auto* const workers = node_of(node).workers;
  return workers != nullptr && workers->kill(which);
}

bool SimulatedCluster::freeze_worker(NodeId node, std::uint64_t which, bool frozen) {
  auto* const workers = node_of(node).workers;
  return workers != nullptr && workers->freeze(which, frozen);
}

void SimulatedCluster::freeze(NodeId id, bool frozen) {
  auto& node = node_of(id);
  if (!node.agent || node.frozen == frozen) return;
  node.frozen = frozen;
  frozen ? network_.pause(cluster::agent_peer(id)) : network_.resume(cluster::agent_peer(id));
}

void SimulatedCluster::freeze_head(bool frozen) {
  if (!head_.process || head_.frozen == frozen) return;
  head_.frozen = frozen;
  frozen ? network_.pause("head") : network_.resume("head");
}

void SimulatedCluster::partition(NodeId a, NodeId b, bool apart) {
  const auto one = cluster::agent_peer(a), other = cluster::agent_peer(b);
  apart ? network_.partition(one, other) : network_.heal(one, other);
}

transport::LinkFaults SimulatedCluster::faults() const {
  transport::LinkFaults faults;
  faults.latency = std::chrono::microseconds(200);
  faults.jitter = std::chrono::microseconds(300);
  faults.refuse = options_.refuse;
  return faults;
}

void SimulatedCluster::cut_one_way(NodeId from, NodeId to, bool cut) {
  auto its = faults();
  its.drop = cut ? 1 : 0;
  network_.set_faults(cluster::agent_peer(from), cluster::agent_peer(to), its);
}

void SimulatedCluster::heal() {
  for (auto& node : nodes_) {
    freeze(node.id, false);
    if (node.workers != nullptr) node.workers->thaw_all();
    for (auto& other : nodes_)
      if (other.id != node.id) {
        partition(node.id, other.id, false);
        cut_one_way(node.id, other.id, false);
      }
  }
  freeze_head(false);
  fill_disk(false);
}

SimulatedDriver* SimulatedCluster::start_driver(NodeId id) {
  auto& node = node_of(id);
  if (!node.agent) return nullptr;
  const auto name = "driver/" + std::to_string(next_driver_++);
  const auto connect = [this, id](NodeId to, const std::string& under) -> std::unique_ptr<transport::Transport> {
    auto& its = node_of(to);
    if (!its.agent || (its.frozen && to != id)) return nullptr;  // There it may wait.
    auto endpoint = its.local->endpoint(under);
    must(endpoint->connect("agent", local_address(to)));
    return endpoint;
  };
  drivers_.push_back(std::make_unique<SimulatedDriver>(id, options_.nodes, name, connect, network_, findings_));
  return drivers_.back().get();
}

// Time

bool SimulatedCluster::step() {
  bool any = false;
  if (head_.process && !head_.frozen) {
    head_.process->poll(now());
    head_.process->tick(now());
  }
  for (auto& node : nodes_) {
    if (!node.agent || node.frozen) continue;
    node.agent->tick(now());
    must(node.loop->run_once(Duration::zero()));
    any = node.workers->step() || any;
  }
  for (auto& driver : drivers_)
    if (!driver->is_gone() && !node_of(driver->node()).frozen) any = driver->step() || any;
  return any;
}

Instant SimulatedCluster::next_event(Instant until) const {
  std::optional<Instant> next = until;
  next = earlier(next, network_.next_event());
  next = earlier(next, head_.starts_at);
  if (head_.process && !head_.frozen) next = earlier(next, head_.process->next_deadline());
  for (const auto& node : nodes_) {
    next = earlier(earlier(next, node.local->next_event()), node.starts_at);
    if (!node.agent || node.frozen) continue;
    next = earlier(earlier(next, node.agent->next_deadline()), node.workers->next_deadline());
  }
  for (const auto& driver : drivers_)
    if (!driver->is_gone() && !node_of(driver->node()).frozen) next = earlier(next, driver->next_deadline());
  return *next;
}

void SimulatedCluster::advance(Instant to) {
  network_.advance(to);
  for (auto& node : nodes_) node.local->advance(to);
  if (head_.starts_at && *head_.starts_at <= to) {
    head_.starts_at.reset();
    start_head();
  }
  for (auto& node : nodes_) {
    if (!node.starts_at || *node.starts_at > to) continue;
    node.starts_at.reset();
    start_agent(node);
  }
}

void SimulatedCluster::run(Duration time) {
  constexpr int kRestlessMax = 10'000;
  const Instant until = now() + time;
  for (int restless = 0; restless < kRestlessMax;) {
    if (step()) {
      ++restless;
      continue;
    }
    const Instant next = std::max(next_event(until), now());
    restless = next > now() ? 0 : restless + 1;
    if (now() >= until && restless > 3) return;
    advance(next);
  }
  throw std::runtime_error("the cluster does not come to rest");
}

std::vector<LivingActor> SimulatedCluster::living() const {
  std::vector<LivingActor> living;
  for (const auto& node : nodes_)
    if (node.workers != nullptr) node.workers->add_living(living);
  return living;
}

}  // namespace paceline::simulate
