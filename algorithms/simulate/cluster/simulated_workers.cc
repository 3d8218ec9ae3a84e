#include "algorithms/simulate/cluster/simulated_workers.h"

#include <set>

#include "actors/process_ids.h"
#include "actors/protocol_wire.h"
#include "algorithms/simulate/cluster/must.h"
#include "algorithms/simulate/cluster/trainee.h"

namespace paceline::simulate {
namespace {

pid_t pid_of(WorkerId worker) { return 1000 + static_cast<pid_t>(actors::number_on_node(worker)); }

}  // namespace

struct SimulatedWorkers::Worker {
  WorkerId id;
  std::string name;
  std::unique_ptr<transport::Transport> endpoint;
  bool frozen = false;
  std::optional<actors::CreateActor> actor{};
  struct Doing {
    actors::Call call;
    Instant done;
  };
  std::vector<Doing> doing{};
  std::map<std::uint32_t, std::uint64_t> last_of{};  ///< Number of the last call of each process.
  std::set<TaskId> had{};
  // Training
  std::unique_ptr<transport::Transport> session{};
  std::optional<Trainee> trainee{};
  Training training{};
  actors::Call call{};
  std::vector<process::DescriptorMessage> answers{};  ///< Of its agent, over its Unix socket.
  std::vector<process::DescriptorMessage> handed{};   ///< To its agent.

  void say(actors::Frames frames) { (void)endpoint->send("agent", std::move(frames)); }
};

SimulatedWorkers::SimulatedWorkers(Node node, Listener listener, std::function<void()> on_gone)
    : node_(std::move(node)), listener_(std::move(listener)), on_gone_(std::move(on_gone)) {}

SimulatedWorkers::~SimulatedWorkers() { on_gone_(); }

void SimulatedWorkers::fork(const actors::ActorRouter::Fork& fork) {
  auto worker = std::make_unique<Worker>();
  worker->id = fork.worker;
  worker->name = actors::worker_peer(fork.worker);
  worker->endpoint = node_.network.endpoint(worker->name);
  must(worker->endpoint->connect("agent", node_.address));
  wire::Message hello;
  auto body = hello.root().initHello();
  body.setRole("worker");
  body.setName(worker->name);
  body.setPid(pid_of(fork.worker));
  worker->say({hello.to_frame()});
  workers_.emplace(fork.worker, std::move(worker));
}

void SimulatedWorkers::answer(WorkerId id, std::uint64_t request, const Result<std::string>& body,
                              const std::vector<process::BorrowedFd>& fds) {
  using Kind = process::DescriptorMessage::Kind;
  const auto worker = workers_.find(id);
  if (worker == workers_.end()) return;
  process::DescriptorMessage message{body ? Kind::answer : Kind::failure, request, body ? *body : body.error().text};
  for (const process::BorrowedFd fd : fds) message.fds.push_back(fd.duplicate());
  worker->second->answers.push_back(std::move(message));
}

char SimulatedWorkers::state(WorkerId id) const {
  const auto worker = workers_.find(id);
  if (worker == workers_.end()) return 0;
  return worker->second->frozen ? 'T' : 'S';
}

pid_t SimulatedWorkers::pid(WorkerId worker) const { return workers_.contains(worker) ? pid_of(worker) : -1; }

SimulatedWorkers::Worker* SimulatedWorkers::find(std::uint64_t which) {
  if (workers_.empty()) return nullptr;
  auto found = workers_.begin();
  std::advance(found, static_cast<std::ptrdiff_t>(which % workers_.size()));
  return found->second.get();
}

bool SimulatedWorkers::kill(std::uint64_t which) {
  const auto* const worker = find(which);
  if (worker != nullptr) ending_.emplace_back(worker->id, "was killed");
  return worker != nullptr;
}

bool SimulatedWorkers::freeze(std::uint64_t which, bool frozen) {
  auto* const worker = find(which);
  if (worker != nullptr) worker->frozen = frozen;
  return worker != nullptr;
}

void SimulatedWorkers::thaw_all() {
  for (auto& [id, worker] : workers_) worker->frozen = false;
}

bool SimulatedWorkers::step() {
  bool any = end_some();
  for (auto& [id, worker] : workers_)
    if (!worker->frozen) any = step(*worker) || any;
  return any;
}

bool SimulatedWorkers::end_some() {
  bool any = false;
  for (const auto& [worker, reason] : std::exchange(ending_, {})) {
    if (workers_.erase(worker) == 0) continue;
    any = true;
    listener_.ended(worker, {reason, {}, false});
  }
  return any;
}

bool SimulatedWorkers::step(Worker& worker) {
  bool any = false;
  while (auto event = worker.endpoint->poll(Duration::zero())) {
    any = true;
    if (event->kind == transport::Event::Kind::message) hear(worker, std::move(event->frames));
  }
  while (!worker.doing.empty() && worker.doing.front().done <= node_.clock.now()) {
    any = true;
    const auto call = std::move(worker.doing.front().call);
    worker.doing.erase(worker.doing.begin());
    worker.say(actors::encode(actors::CallResult{call.task, call.owner, Bytes(8)}));
  }
  if (!worker.trainee) return any;
  for (auto& answer : std::exchange(worker.answers, {})) {
    any = true;
    worker.trainee->on_answer(std::move(answer));
  }
  any = worker.trainee->step() || any;
  for (auto& message : std::exchange(worker.handed, {})) {
    any = true;
    listener_.said(worker.id, std::move(message));
  }
  if (worker.trainee->is_over()) end_training(worker);
  return any;
}

std::optional<Instant> SimulatedWorkers::next_deadline() const {
  std::optional<Instant> next;
  for (const auto& [id, worker] : workers_) {
    if (worker->frozen) continue;
    if (!worker->doing.empty()) next = earlier(next, worker->doing.front().done);
    if (worker->trainee) next = earlier(next, worker->trainee->next_deadline());
  }
  return next;
}

void SimulatedWorkers::add_living(std::vector<LivingActor>& living) const {
  for (const auto& [id, worker] : workers_)
    if (worker->actor)
      living.push_back({worker->actor->actor, worker->actor->naming.claims ? worker->actor->name : std::string()});
}

void SimulatedWorkers::hear(Worker& worker, std::vector<transport::Frame> frames) {
  const auto message = wire::Received::parse(std::move(frames.front()));
  if (!message) return node_.find(worker.name + " was told: " + message.error().text);
  must(message->visit([&](const wire::Envelope::Reader& envelope) -> Result<void> {
    if (envelope.isCreateActor()) {
      worker.actor = must(actors::decode(envelope.getCreateActor()));
      worker.say(actors::encode(actors::ActorReady{worker.actor->actor, worker.actor->owner, false, {}}));
    }
    if (envelope.isCall()) on_call(worker, must(actors::decode(envelope.getCall())));
    if (envelope.isAlive()) {
      wire::Message yes;
      yes.root().initAlive();
      worker.say({yes.to_frame()});
    }
    return {};
  }));
}

void SimulatedWorkers::on_call(Worker& worker, actors::Call call) {
  const auto wrong = [&](const std::string& how) {
    node_.find(worker.name + " has " + how + " call " + to_string(call.task));
  };
  if (call.fence) return worker.say(actors::encode(actors::CallResult{call.task, call.owner, Bytes()}));
  if (!worker.actor || worker.actor->actor != call.actor) wrong("another's");
  if (!worker.had.insert(call.task).second) wrong("twice");
  auto& last = worker.last_of[actors::process_of(call.task)];
  if (call.number <= last) wrong("too late");
  last = call.number;
  if (!call.arguments.empty()) return begin_training(worker, std::move(call));
  const Instant free = worker.doing.empty() ? node_.clock.now() : worker.doing.back().done;
  worker.doing.push_back({std::move(call), free + node_.call_takes});
}

void SimulatedWorkers::begin_training(Worker& worker, actors::Call call) {
  worker.session = node_.network.endpoint("session/" + to_string(worker.id));
  must(worker.session->connect("agent", node_.address));
  std::string text;
  for (const std::byte byte : call.arguments.front()) text += static_cast<char>(byte);
  worker.training = Training::from(text);
  worker.call = std::move(call);
  Trainee::Agent agent;
  agent.say = [&worker](wire::Message& message) { (void)worker.session->send("agent", {message.to_frame()}); };
  agent.hand = [&worker](process::DescriptorMessage message) { worker.handed.push_back(std::move(message)); };
  worker.trainee.emplace(worker.id, worker.training, std::move(agent), node_.clock);
}

void SimulatedWorkers::end_training(Worker& worker) {
  const auto& trainee = *worker.trainee;
  node_.trained({worker.training.job, worker.training.rank, trainee.trouble(), trainee.updates_done(), trainee.model(),
                 trainee.averages(), trainee.has_left(), trainee.began_with()});
  const auto result =
      trainee.trouble().empty() ? Result<Bytes>(Bytes(8)) : Result<Bytes>(fail(ErrorKind::internal, trainee.trouble()));
  worker.say(actors::encode(actors::CallResult{worker.call.task, worker.call.owner, result}));
  worker.trainee.reset();
}

}  // namespace paceline::simulate
