#include "tests/sim/cluster/simulated_cluster.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "actors/process_ids.h"
#include "actors/protocol_wire.h"
#include "runtime/link/link_transport.h"

namespace paceline::sim {
namespace {

using transport::Event;

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text);
  return *std::move(result);
}
void must(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().text);
}

std::string local_address(NodeId node) { return "sim:local-" + to_string(node); }

}  // namespace

/// A worker's process: an actor, which answers each call some time later, in order.
struct SimulatedCluster::Worker {
  WorkerId id;
  std::string name;
  std::unique_ptr<transport::Transport> endpoint;
  std::optional<actors::CreateActor> actor;
  struct Doing {
    actors::Call call;
    Instant done;
  };
  std::vector<Doing> doing;
  std::map<std::uint32_t, std::uint64_t> last_of;  ///< Number of the last call of each process.
  std::set<TaskId> had;
};

class SimulatedCluster::NodeWorkers final : public cluster::Workers {
 public:
  NodeWorkers(SimulatedCluster& cluster, Node& node, Listener listener)
      : cluster_(cluster), node_(node), listener_(std::move(listener)) {}
  ~NodeWorkers() override { node_.workers = nullptr; }

  void fork(const actors::ActorRouter::Fork& fork) override {
    auto worker = std::make_unique<Worker>();
    worker->id = fork.worker;
    worker->name = actors::worker_peer(fork.worker);
    worker->endpoint = node_.local->endpoint(worker->name);
    must(worker->endpoint->connect("agent", local_address(node_.id)));
    wire::Message hello;
    auto body = hello.root().initHello();
    body.setRole("worker");
    body.setName(worker->name);
    body.setPid(pid_of(fork.worker));
    say(*worker, {hello.to_frame()});
    workers_.emplace(fork.worker, std::move(worker));
  }
  void on_connected(WorkerId, pid_t) override {}
  void end(WorkerId worker, const std::string& reason) override { ending_.emplace_back(worker, reason); }
  void send(WorkerId, const std::string&, const std::vector<int>&) override {}
  char state(WorkerId worker) const override { return workers_.contains(worker) ? 'S' : 0; }
  pid_t pid(WorkerId worker) const override { return workers_.contains(worker) ? pid_of(worker) : -1; }
  std::string log(WorkerId) const override { return {}; }
  std::size_t size() const override { return workers_.size(); }
  std::vector<MemorySource> memory_sources() const override { return {}; }

  bool kill(std::uint64_t which) {
    if (workers_.empty()) return false;
    auto victim = workers_.begin();
    std::advance(victim, static_cast<std::ptrdiff_t>(which % workers_.size()));
    ending_.emplace_back(victim->first, "");
    return true;
  }

  /// Whether anything happened.
  bool step() {
    bool any = false;
    for (const auto& [worker, reason] : std::exchange(ending_, {})) {
      if (workers_.erase(worker) == 0) continue;
      any = true;
      listener_.ended(worker, {reason.empty() ? "was killed" : reason, {}, reason.empty()});
    }
    const Instant now = cluster_.now();
    for (auto& [id, worker] : workers_) {
      while (auto event = worker->endpoint->poll(Duration::zero())) {
        any = true;
        if (event->kind == Event::Kind::message) hear(*worker, std::move(event->frames));
      }
      while (!worker->doing.empty() && worker->doing.front().done <= now) {
        any = true;
        const auto call = std::move(worker->doing.front().call);
        worker->doing.erase(worker->doing.begin());
        say(*worker, actors::encode(actors::CallResult{call.task, call.owner, Bytes(8)}));
      }
    }
    return any;
  }

  std::optional<Instant> next_deadline() const {
    std::optional<Instant> next;
    for (const auto& [id, worker] : workers_)
      if (!worker->doing.empty()) next = earlier(next, worker->doing.front().done);
    return next;
  }

  void tell_living(std::vector<Living>& living) const {
    for (const auto& [id, worker] : workers_)
      if (worker->actor)
        living.push_back({worker->actor->actor, worker->actor->naming.claims ? worker->actor->name : std::string()});
  }

 private:
  static pid_t pid_of(WorkerId worker) { return 1000 + static_cast<pid_t>(actors::number_on_node(worker)); }

  static void say(Worker& worker, actors::Frames frames) { (void)worker.endpoint->send("agent", std::move(frames)); }

  void hear(Worker& worker, std::vector<transport::Frame> frames) {
    const auto message = wire::Received::parse(std::move(frames.front()));
    if (!message) return cluster_.findings_.push_back(worker.name + " was told: " + message.error().text);
    must(message->visit([&](const wire::Envelope::Reader& envelope) -> Result<void> {
      if (envelope.isCreateActor()) {
        worker.actor = must(actors::decode(envelope.getCreateActor()));
        say(worker, actors::encode(actors::ActorReady{worker.actor->actor, worker.actor->owner, false, {}}));
      }
      if (envelope.isCall()) on_call(worker, must(actors::decode(envelope.getCall())));
      return {};
    }));
  }

  void on_call(Worker& worker, actors::Call call) {
    const auto wrong = [&](const std::string& how) {
      cluster_.findings_.push_back(worker.name + " has " + how + " call " + to_string(call.task));
    };
    if (call.fence) return say(worker, actors::encode(actors::CallResult{call.task, call.owner, Bytes()}));
    if (!worker.actor || worker.actor->actor != call.actor) wrong("another's");
    if (!worker.had.insert(call.task).second) wrong("twice");
    auto& last = worker.last_of[actors::process_of(call.task)];
    if (call.number <= last) wrong("too late");
    last = call.number;
    const Instant free = worker.doing.empty() ? cluster_.now() : worker.doing.back().done;
    worker.doing.push_back({std::move(call), free + cluster_.options_.call_takes});
  }

  SimulatedCluster& cluster_;
  Node& node_;
  Listener listener_;
  std::map<WorkerId, std::unique_ptr<Worker>> workers_;
  std::vector<std::pair<WorkerId, std::string>> ending_;
};

SimulatedCluster::SimulatedCluster(Options options) : options_(options), network_(options.seed) {
  network_.set_faults({.latency = std::chrono::microseconds(200), .jitter = std::chrono::microseconds(300)});
  start_head();
  nodes_.reserve(static_cast<std::size_t>(options_.nodes));
  for (std::int32_t i = 0; i < options_.nodes; ++i) {
    auto& node = nodes_.emplace_back();
    node.id = NodeId{i};
    node.local = std::make_unique<transport::SimNetwork>(options_.seed + 1 + static_cast<std::uint64_t>(i));
    node.local->set_faults({.latency = std::chrono::microseconds(20)});
    start_agent(node);
  }
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
  head_.process = std::make_unique<cluster::Head>(cluster::Head::Options{"simulated", options_.nodes, now()},
                                                  link_endpoint("head"));
}

void SimulatedCluster::start_agent(Node& node) {
  auto local = node.local->endpoint("agent");
  (void)must(local->listen(local_address(node.id)));
  node.loop = std::make_unique<EventLoop>(must(EventLoop::create()));
  cluster::Agent::Options options;
  options.node = node.id;
  options.nodes = options_.nodes;
  options.cpus = 4;
  options.directory = directory_.path;
  options.local_address = local_address(node.id);
  options.peer_address = "sim:" + cluster::agent_peer(node.id);
  options.head_address = "sim:head";
  options.starts = node.starts++;
  options.clock = &network_;
  options.messages_a_turn = options_.messages_a_turn;
  options.has_threads = false;
  options.workers = [this, &node](cluster::Workers::Listener listener) {
    auto workers = std::make_unique<NodeWorkers>(*this, node, std::move(listener));
    node.workers = workers.get();
    return workers;
  };
  auto peers = link_endpoint(cluster::agent_peer(node.id));
  options.incarnation = incarnations_;
  node.agent = std::make_unique<cluster::Agent>(
      options, *node.loop, std::move(local), std::move(peers), must(collective::Averager::create(1)),
      must(observe::Log::open(directory_.path / ("agent-" + to_string(node.id) + ".log"), "agent")));
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
    if (driver->node == id) driver->over = true;
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

// Drivers

SimulatedCluster::Driver* SimulatedCluster::start_driver(NodeId id) {
  auto& node = node_of(id);
  if (!node.agent) return nullptr;
  auto driver = std::make_unique<Driver>();
  driver->node = id;
  driver->name = "driver/" + std::to_string(next_driver_++);
  driver->endpoint = node.local->endpoint(driver->name);
  must(driver->endpoint->connect("agent", local_address(id)));
  wire::Message hello;
  auto body = hello.root().initHello();
  body.setRole("driver");
  body.setName(driver->name);
  (void)driver->endpoint->send("agent", {hello.to_frame()});
  actors::Executable executable;
  executable.path = "/simulated";
  (void)driver->endpoint->send("agent", actors::encode(executable));
  drivers_.push_back(std::move(driver));
  return drivers_.back().get();
}

ActorId SimulatedCluster::create(Driver& driver, NodeId node, const std::string& name, int restarts) {
  actors::CreateActor create;
  create.actor = actors::actor_id(node, driver.process, driver.next_actor++);
  create.name = name;
  create.owner = driver.name;
  create.naming.claims = !name.empty();
  create.rule.restarts = restarts;
  create.type = "Simulated";
  driver.actors.emplace(create.actor, std::nullopt);
  (void)driver.endpoint->send("agent", actors::encode(create));
  return create.actor;
}

void SimulatedCluster::call(Driver& driver, ActorId actor) {
  actors::Call call;
  call.task = actors::task_id(driver.process, driver.next_call);
  call.number = driver.next_call++;
  call.actor = actor;
  driver.calls.emplace(call.task, Made{actor, {}});
  if (const auto dead = driver.actors.find(actor); dead != driver.actors.end() && dead->second) {
    driver.calls.at(call.task).result = tl::unexpected(*dead->second);  // A client knows that its actor has died.
    return;
  }
  (void)driver.endpoint->send("agent", actors::encode(call));
}

void SimulatedCluster::request(Driver& driver, const std::string& verb, const std::string& json) {
  wire::Message message;
  auto body = message.root().initRequest();
  body.setId(driver.next_request);
  body.setVerb(verb);
  body.setJson(json);
  body.setFrom(driver.name);
  driver.requests.emplace(driver.next_request++, Asked{verb, {}});
  (void)driver.endpoint->send("agent", {message.to_frame()});
}

bool SimulatedCluster::hear(Driver& driver) {
  bool any = false;
  while (auto event = driver.endpoint->poll(Duration::zero())) {
    any = true;
    if (event->kind == Event::Kind::disconnected) driver.over = true;
    if (event->kind != Event::Kind::message) continue;
    const auto message = must(wire::Received::parse(std::move(event->frames.front())));
    must(message.visit([&](const wire::Envelope::Reader& envelope) -> Result<void> {
      if (envelope.isWelcome()) driver.process = envelope.getWelcome().getProcess();
      if (envelope.isActorReady()) {
        const auto ready = must(actors::decode(envelope.getActorReady()));
        if (ready.error.text.empty()) return {};
        driver.actors[ready.actor] = ready.error;
        for (auto& [task, made] : driver.calls)
          if (made.actor == ready.actor && !made.result) made.result = tl::unexpected(ready.error);
      }
      if (envelope.isCallResult()) {
        auto result = must(actors::decode(envelope.getCallResult(), event->frames));
        const auto made = driver.calls.find(result.task);
        if (made != driver.calls.end() && !made->second.result) made->second.result = std::move(result.value);
      }
      if (envelope.isReply()) {
        const auto reply = envelope.getReply();
        const auto asked = driver.requests.find(reply.getId());
        if (asked == driver.requests.end()) return {};
        if (asked->second.reply) findings_.push_back(driver.name + " has two replies to " + asked->second.verb);
        asked->second.reply = reply.getOk() ? Result<std::string>(wire::text(reply.getJson()))
                                            : tl::unexpected(actors::read(reply.getError()));
      }
      return {};
    }));
  }
  return any;
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
    if (!driver->over && !node_of(driver->node).frozen) any = hear(*driver) || any;
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

std::vector<SimulatedCluster::Living> SimulatedCluster::living() const {
  std::vector<Living> living;
  for (const auto& node : nodes_)
    if (node.workers != nullptr) node.workers->tell_living(living);
  return living;
}

}  // namespace paceline::sim
