#include "actors/client.h"

#include <poll.h>
#include <unistd.h>

#include <utility>

#include "actors/causes.h"
#include "actors/gathering.h"
#include "actors/how_soon.h"
#include "actors/protocol_wire.h"
#include "runtime/base/steady_now.h"
#include "runtime/base/turn_budget.h"

namespace paceline::actors {
namespace {

constexpr const char* kAgent = "agent";
constexpr Duration kLongestSleep = std::chrono::minutes(1);
constexpr int kLineAfter = 8;  // Results: who calls so often calls again.

Bytes to_raw(const std::string& s) {
  const auto* begin = reinterpret_cast<const std::byte*>(s.data());
  return {begin, begin + s.size()};
}

std::string from_raw(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace

Result<std::unique_ptr<Client>> Client::connect(Options options, TransportFactory factory) {
  const Duration patience = options.welcome_patience;
  const std::string address = options.agent_address;
  std::unique_ptr<Client> client(new Client(std::move(options), std::move(factory)));
  if (!client->welcome_->wait_for(patience)) {
    return fail(ErrorKind::timed_out,
                "no agent answers at " + address + ": is the cluster still running (paceline status)?");
  }
  if (const auto& welcome = client->welcome_->wait(); !welcome) return tl::unexpected(welcome.error());
  return client;
}

Client::Client(Options options, TransportFactory factory)
    : options_(std::move(options)), factory_(std::move(factory)), other_(options_.on_other) {
  open_lines();
  thread_ = std::thread([this] { run(); });
}

void Client::close() {
  stopping_ = true;
  outbox_->close();
  if (thread_.joinable()) thread_.join();
  std::map<JobId, std::vector<PendingResultPtr>> left_over;
  {
    std::lock_guard lock(mutex_);
    left_over.swap(left_over_);
  }
  for (const auto& [job, calls] : left_over)
    for (const auto& call : calls) call->complete(fail(ErrorKind::cancelled, "this process has left the cluster"));
}

void Client::run() {
  auto transport = factory_(options_.name);
  if (!transport) return finish(std::move(transport).error());
  if (auto connected = (*transport)->connect(kAgent, options_.agent_address); !connected)
    return finish(connected.error());
  wire::Message hello;
  auto builder = hello.root().initHello();
  builder.setRole(options_.role);
  builder.setName(options_.name);
  builder.setPid(getpid());
  builder.setBuild(options_.executable.build);
  unsent_ = as_message(hello.to_frame());
  if (!options_.executable.path.empty()) (void)set_executable(options_.executable);  // Before anybody has the client.
  loop(**transport);
  finish({ErrorKind::cancelled, "this process ended its connection to the agent"});
}

void Client::loop(transport::Transport& transport) {
  auto own_turn = lines_turn_.take([] {});
  bool more = true;  // May have come. What is to be sent has its turn, too.
  while (true) {
    const bool last = stopping_;
    const bool sent_all = flush(transport);
    more = more || last;
    for (TurnBudget turn; more && turn.take();) {
      auto event = transport.poll(Duration::zero());
      more = event.has_value();
      if (event) on_event(*std::move(event));
    }
    {
      std::lock_guard lock(mutex_);
      if (ended_) return;
    }
    if (last && sent_all && !more) return;
    const Instant now = steady_now();
    auto again = how_soon(look_after_lines(now), options_.on_turn ? options_.on_turn(*this) : std::nullopt, now);
    again = how_soon(again, transport.next_deadline(), now);
    pollfd waits[4] = {{transport.descriptor(), POLLIN, 0},
                       {outbox_->descriptor(), POLLIN, 0},
                       {options_.hang_up, POLLRDHUP, 0},
                       {-1, POLLIN, 0}};  // The lines, while they are this thread's.
    Duration timeout = std::min(again.value_or(kLongestSleep), kLongestSleep);
    // A transport without room or without a descriptor has to be asked again.
    if (!sent_all || transport.descriptor() < 0 || last) timeout = std::chrono::milliseconds(1);
    own_turn = sleep(waits, more ? Duration::zero() : timeout, std::move(own_turn));
    more = more || waits[0].revents != 0 || transport.descriptor() < 0;
    if ((waits[3].revents & POLLIN) != 0) lines_->serve();
    if ((waits[1].revents & POLLIN) != 0) outbox_->take_notice();
    if (options_.hang_up >= 0 && (waits[2].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) {
      options_.hang_up = -1;
      if (options_.on_hang_up) options_.on_hang_up();
    }
  }
}

/// Returns whether all was sent.
bool Client::flush(transport::Transport& transport) {
  if (const auto dropped = outbox_->take_dropped(); !dropped.empty()) forget_streams(dropped);
  while (true) {
    if (!unsent_) unsent_ = outbox_->take();
    if (!unsent_) {
      if (auto release = outbox_->take_release()) {
        unsent_ = release_message(*release);
      }
    }
    if (!unsent_) return true;
    auto sent = transport.send(kAgent, std::move(*unsent_));
    if (!sent && sent.error().kind == ErrorKind::overloaded) return false;
    unsent_.reset();
    if (!sent) finish(sent.error());
  }
}

std::vector<transport::Frame> Client::release_message(const Release& release) {
  wire::Message message;
  auto request = message.root().initRequest();
  request.setVerb(kReleaseVerb);
  request.setJson(to_json(release));
  request.setFrom(options_.name);
  std::lock_guard lock(mutex_);
  for (auto actor : release.actors) {
    dead_.erase(actor);
    job_of_.erase(actor);
    if (const auto line = line_to_.find(actor);
        line != line_to_.end() && line->second.peer.empty() && line->second.state != Line::State::lost)
      line_to_.erase(line);
  }
  return as_message(message.to_frame());
}

void Client::on_event(transport::Event event) {
  switch (event.kind) {
    case transport::Event::Kind::message: return on_message(std::move(event.frames));
    case transport::Event::Kind::connected:
    case transport::Event::Kind::contested: return;
    case transport::Event::Kind::disconnected:
      return finish({ErrorKind::disconnected, "the agent at " + options_.agent_address + " is gone"});
    case transport::Event::Kind::refused:
      return finish({ErrorKind::invalid, "the agent at " + options_.agent_address + " refused this process's key"});
  }
}

void Client::on_message(std::vector<transport::Frame> frames) {
  if (frames.empty()) return;
  auto received = wire::Received::parse(std::move(frames[0]));
  if (!received) return finish(std::move(received).error());
  const auto handled = received->visit([&](wire::Envelope::Reader root) -> Result<void> {
    switch (root.which()) {
      case wire::Envelope::WELCOME:
        node_ = root.getWelcome().getNode();
        process_ = root.getWelcome().getProcess();
        welcome_->complete(Bytes{});
        return {};
      case wire::Envelope::REFUSED: return tl::unexpected(read(root.getRefused()));
      case wire::Envelope::CALL_RESULT:
        return decode(root.getCallResult(), frames).map([this](CallResult r) { on_result(std::move(r)); });
      case wire::Envelope::ACTOR_READY: return decode(root.getActorReady()).map([this](ActorReady r) { on_actor(r); });
      case wire::Envelope::REPLY: {
        const auto reply = root.getReply();
        Result<std::string> answer = wire::text(reply.getJson());
        if (!reply.getOk()) answer = tl::unexpected(read(reply.getError()));
        on_reply(reply.getId(), std::move(answer));
        return {};
      }
      case wire::Envelope::CREATE_ACTOR:
        return decode(root.getCreateActor()).map([this](CreateActor m) { on_create(std::move(m)); });
      case wire::Envelope::CALL: return decode(root.getCall()).map([this](Call call) { on_call(std::move(call)); });
      case wire::Envelope::PUSH_TASK:
        return decode(root.getPushTask(), frames).map([this](PushTask push) { on_push(std::move(push)); });
      case wire::Envelope::SIGNAL:
        return decode(root.getSignal()).map([this](const Signal& signal) {
          if (signal.is_wish) return on_wish(signal);
          if (options_.on_signal) options_.on_signal(*this, signal);
        });
      case wire::Envelope::LOAN: return decode(root.getLoan()).map([this](const Loan& loan) { on_loan(loan); });
      case wire::Envelope::ALIVE: {
        wire::Message yes;
        yes.root().initAlive();
        (void)outbox_->push(as_message(yes.to_frame()),
                            Duration::zero());  // Without room for it there is a sign of life.
        return {};
      }
      case wire::Envelope::NODES: {
        std::vector<NodeId> nodes;
        for (auto entry : root.getNodes().getNodes()) nodes.emplace_back(entry.getNode());
        std::lock_guard lock(mutex_);
        nodes_ = std::move(nodes);
        return {};
      }
      case wire::Envelope::JOB_EVENT: {
        if (auto handler = copy_of(job_event_)) handler(*received);
        return {};
      }
      default:
        if (auto handler = copy_of(other_)) handler(*received, frames);
        return {};
    }
  });
  if (!handled) finish(handled.error());
}

void Client::on_call(Call call) {
  if (call.fence) return (void)answer({call.task, std::move(call.owner), Bytes{}, call.by_line});
  CallResult refused{call.task, call.owner,
                     fail(ErrorKind::overloaded, options_.name + " has no room for more calls: wait for some first"),
                     call.by_line};
  if (options_.on_work && options_.on_work(std::move(call))) return;
  (void)answer(std::move(refused));
}

Result<void> Client::answer(CallResult result) {
  const bool by_line = result.by_line && lines_;
  const std::string owner = result.owner;
  auto frames = encode(std::move(result));
  if (by_line && lines_->send_in(owner, frames)) return {};
  return post(std::move(frames));
}

void Client::on_create(CreateActor create) {
  const ActorReady refused{
      create.actor, create.owner, true, {ErrorKind::overloaded, options_.name + " takes no actor"}};
  if (options_.on_work && options_.on_work(std::move(create))) return;
  (void)outbox_->push(encode(refused), Duration::zero());
}

void Client::on_result(CallResult result) {
  if (result.item > 0) return on_item(std::move(result));
  PendingResultPtr slot;
  std::vector<PendingResultPtr> over;
  {
    std::lock_guard lock(mutex_);
    const auto found = in_flight_.find(result.task);
    if (found == in_flight_.end()) {
      const Instant now = steady_now();
      if (auto ended = ends_.extract(result.task)) {
        slot = std::move(ended.mapped());
      } else if (result.unbegun) {
        tasks_.on_unbegun(result.task, now);
        over = tasks_.take_cancelled();
      } else if (result.value || result.value.error().kind == ErrorKind::cancelled ||
                 !tasks_.on_error(result.task, result.ran, now)) {
        slot = tasks_.on_result(result.task, result.ran, now);
        deadlines_.remove(result.task);
        room_.notify_all();
      }
      push_tasks(now);
    } else {
      slot = std::move(found->second.result);
      const ActorId actor = found->second.actor;
      windows_.on_result(actor, result.task, found->second.bytes,
                         result.by_line ? CallWindows::Way::line : CallWindows::Way::agent);
      send_kept(actor);
      room_.notify_all();
      if (lines_ && node_of(actor) == node()) {
        Line& line = line_to_[actor];
        if (line.state == Line::State::none && ++line.results == kLineAfter) ask_for_line(actor, line);
      }
      in_flight_.erase(found);
    }
  }
  end_cancelled(std::move(over));
  if (slot) slot->complete(std::move(result.value));  // Else it has failed before, with its actor or worker.
}

void Client::on_actor(const ActorReady& message) {
  if (on_name(message)) return;
  if (message.error.text.empty() && !message.dead) return;
  std::string peer;
  {
    std::lock_guard lock(mutex_);
    if (const auto line = line_to_.find(message.actor); line != line_to_.end()) peer = line->second.peer;
  }
  if (lines_ && !peer.empty()) lines_->hear_out(peer);  // What it has answered before its end.
  {
    std::lock_guard lock(mutex_);
    dead_[message.actor] = message.error;
  }
  fail_calls_to(message.actor, message.error);
}

void Client::fail_calls_to(ActorId actor, const Error& error) {
  std::vector<PendingResultPtr> failed;
  {
    std::lock_guard lock(mutex_);
    windows_.forget(actor);
    if (const auto line = line_to_.find(actor); line != line_to_.end()) {
      lost_ -= line->second.state == Line::State::lost ? 1 : 0;
      line_to_.erase(line);
    }
    room_.notify_all();
    for (auto it = in_flight_.begin(); it != in_flight_.end();) {
      if (it->second.actor == actor) {
        failed.push_back(std::move(it->second.result));
        it = in_flight_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (auto& result : failed) result->complete(tl::unexpected(error));
}

/// Where what this process asks for is asked for.
Place Client::here() const {
  const auto worker = worker_named(options_.name);
  return {node().value, worker ? place_of(*worker).worker : std::string()};
}

ActorId Client::actor_of(TaskId task) {
  std::lock_guard lock(mutex_);
  const auto found = in_flight_.find(task);
  return found == in_flight_.end() ? ActorId{} : found->second.actor;
}

void Client::on_reply(std::uint64_t id, Result<std::string> reply) {
  PendingResultPtr slot;
  ActorId actor;
  {
    std::lock_guard lock(mutex_);
    if (auto asked = line_requests_.extract(id)) actor = asked.mapped();
  }
  if (actor.value != 0) return on_line(actor, reply);
  {
    std::lock_guard lock(mutex_);
    const auto found = requests_.find(id);
    if (found == requests_.end()) return;  // Nobody waits any more.
    slot = std::move(found->second);
    requests_.erase(found);
  }
  slot->complete(std::move(reply).map(to_raw));
}

/// The end of the connection: everything that waits hears why. The first reason stays.
void Client::finish(Error error) {
  std::vector<PendingResultPtr> failed;
  {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = error;
    failed = tasks_.forget_all();
    failed.push_back(welcome_);
    for (auto& [task, call] : in_flight_) {
      const auto its = job_of_.find(call.actor);
      const bool goes_on =
          error.kind == ErrorKind::disconnected && its != job_of_.end() && node_of(call.actor) != node();
      (goes_on ? left_over_[its->second] : failed).push_back(std::move(call.result));
    }
    for (auto& [id, request] : requests_) failed.push_back(std::move(request));
    for (auto& [actor, decided] : std::exchange(names_, {})) failed.push_back(decided);
    for (auto& [task, ended] : std::exchange(ends_, {})) failed.push_back(ended);
    in_flight_.clear();
    windows_.forget_all();
    line_to_.clear();
    full_.clear();
    lost_ = 0;
    room_.notify_all();
    requests_.clear();
  }
  outbox_->close();
  for (auto& result : failed) result->complete(tl::unexpected(error));
  if (options_.on_lost && error.kind != ErrorKind::cancelled) options_.on_lost(error);
}

std::vector<PendingResultPtr> Client::take_calls_of(JobId job) {
  std::lock_guard lock(mutex_);
  std::vector<PendingResultPtr> taken;
  if (auto left_over = left_over_.extract(job)) taken = std::move(left_over.mapped());
  std::erase_if(in_flight_, [&](auto& entry) {
    auto& call = entry.second;
    const auto its = job_of_.find(call.actor);
    if (its == job_of_.end() || its->second != job) return false;
    windows_.forget(call.actor);
    taken.push_back(std::move(call.result));
    return true;
  });
  return taken;
}

void Client::make_again(JobId job, const std::vector<PendingResultPtr>& calls) {
  std::lock_guard lock(mutex_);
  for (const auto& result : calls) {
    Call call;
    call.task = result->task();
    call.actor = result->actor();
    call.again = true;
    job_of_.emplace(call.actor, job);
    auto frame = std::move(encode(call).front());
    in_flight_.emplace(call.task, InFlight{result, call.actor, frame.size()});
    windows_.add(call.actor, call.task, std::move(frame));
    send_kept(call.actor);
  }
}

std::optional<Error> Client::ended() const {
  std::lock_guard lock(mutex_);
  return ended_;
}

PendingResultPtr Client::submit(Call call, std::vector<ArgumentSource> arguments, const TaskNeeds& needs,
                                const std::shared_ptr<IncomingStream>& stream) {
  call.task = task_id(process_, next_task_++);
  auto result = std::make_shared<PendingResult>(call.task, call.actor);
  if (stream) expect(stream, result);
  if (needs.timeout && *needs.timeout <= Duration::zero()) {  // No worker is to be quicker than who would say so.
    result->complete(tl::unexpected(too_late(*result, call.name, *needs.timeout)));
    return result;
  }
  if (needs.timeout) {
    std::lock_guard lock(mutex_);
    if (deadlines_.add(result, call.name, *needs.timeout, steady_now())) outbox_->notify();
  }
  std::vector<PendingResultPtr> awaited;
  for (const auto& argument : arguments) {
    const auto* source = std::get_if<PendingResultPtr>(&argument);
    if (source != nullptr && !(*source)->ready()) awaited.push_back(*source);
  }
  if (awaited.empty()) {
    send_now(std::move(call), result, std::move(arguments), needs, options_.call_patience);
    look_in_passing();
    return result;
  }
  // The last of the awaited results to arrive sends the call.
  struct Deferred {
    Deferred(Call c, std::vector<ArgumentSource> a, std::size_t awaited)
        : call(std::move(c)), arguments(std::move(a)), left(awaited) {}
    Call call;
    std::vector<ArgumentSource> arguments;
    std::atomic<std::size_t> left;
  };
  auto deferred = std::make_shared<Deferred>(std::move(call), std::move(arguments), awaited.size());
  {
    std::lock_guard lock(mutex_);
    deferred_.emplace(result->task(), result);
  }
  for (const auto& source : awaited) {
    source->when_ready([this, deferred, result, needs] {
      if (--deferred->left > 0) return;
      send_now(std::move(deferred->call), result, std::move(deferred->arguments), needs, Duration::zero());
      std::lock_guard lock(mutex_);
      deferred_.erase(result->task());  // Where it could not be sent.
    });
  }
  return result;
}

void Client::send_now(Call call, PendingResultPtr result, std::vector<ArgumentSource> arguments, const TaskNeeds& needs,
                      Duration patience) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (auto* bytes = std::get_if<Bytes>(&arguments[i])) {
      call.arguments.push_back(std::move(*bytes));
      continue;
    }
    if (const auto& value = std::get<PendingResultPtr>(arguments[i])->wait()) {
      call.arguments.push_back(*value);
    } else {
      const auto task = task_called(call.name);
      auto what =
          whats_of(call.callee == nullptr ? "" : call.callee(call.arguments.front(), call.function.build), task);
      const auto of = task.empty() ? "" : " of " + task;
      return (void)result->complete(tl::unexpected(
          stopped_by(value.error(), std::move(what), here(), "argument " + std::to_string(i) + of + " failed")));
    }
  }
  std::size_t size = 0;
  for (const auto& argument : call.arguments) size += argument.size();
  if (size > kArgumentBytesMax || call.arguments.size() > kArgumentsMax) {
    return (void)result->complete(
        fail(ErrorKind::invalid, "the arguments of a call take " + std::to_string(size >> 20) + " MiB; at most " +
                                     std::to_string(kArgumentBytesMax >> 20) + " can go by value"));
  }
  if (call.actor.value != 0) return send_to_actor(std::move(call), result, patience);
  send_task(call, std::move(result), needs, patience);
}

/// Why no call can be made now.
std::optional<Error> Client::refusal(ActorId actor) const {
  if (ended_) return ended_;
  if (const auto dead = dead_.find(actor); dead != dead_.end()) return dead->second;
  if (in_flight_.size() + tasks_.size() < kPendingMax) return std::nullopt;
  return Error{ErrorKind::overloaded,
               "more than " + std::to_string(kPendingMax) + " calls have no result yet: wait for some first"};
}

/// A caller that makes too much waits (but not the I/O thread, which brings the results: no patience). Why nothing can
/// be made now.
std::optional<Error> Client::wait_for_room(std::unique_lock<std::mutex>& lock, ActorId actor, Duration patience,
                                           const std::function<bool()>& has_room) {
  const auto may_go_on = [&] { return has_room() || refusal(actor); };
  std::optional<Sleeping> sleeping;
  if (patience != Duration::zero() && !may_go_on()) sleeping.emplace();
  const bool waited = patience == Duration::zero() || room_.wait_for(lock, patience, may_go_on);
  if (auto refused = refusal(actor); refused || waited) return refused;
  return Error{ErrorKind::overloaded,
               "calls have had no result for " +
                   std::to_string(std::chrono::duration_cast<std::chrono::minutes>(patience).count()) +
                   " minutes, and there are more than this process keeps: wait for some results first"};
}

/// What is beyond the actor's window waits here.
void Client::send_to_actor(Call call, const PendingResultPtr& result, Duration patience) {
  auto frame = std::move(encode(call).front());
  std::unique_lock lock(mutex_);
  const auto refused = wait_for_room(lock, call.actor, patience, [this] { return windows_.has_room(); });
  if (is_wanted_no_more(call.task, patience)) return;
  if (!refused) {
    set_number(frame, ++calls_);
    in_flight_.emplace(call.task, InFlight{result, call.actor, frame.size()});
    windows_.add(call.actor, call.task, std::move(frame));
    return send_kept(call.actor);
  }
  lock.unlock();
  result->complete(tl::unexpected(*refused));
}

Result<Client::Created> Client::create(FunctionRef constructor, std::vector<Bytes> arguments, ActorName name,
                                       NodeId node, RestartRule rule, Concurrency concurrency) {
  if (rule.restarts < -1 || rule.call_retries < -1)
    return fail(ErrorKind::invalid, "restarts and call_retries of an actor are numbers from 0, or -1: always");
  if (rule.call_retries != 0 && rule.restarts == 0)
    return fail(ErrorKind::invalid,
                "call_retries without restarts: calls are sent again only to an actor that is started again, give it "
                "restarts, too");
  PACELINE_TRY(concurrency.check());
  if (name.text.empty() && (name.rule.detached || name.rule.get_if_exists))
    return fail(ErrorKind::invalid,
                "an actor that is detached, or that may exist already, is found by its name: give it one");
  if (name.rule.claims && name.text.size() > kActorNameMax)
    return fail(ErrorKind::invalid, "the name of an actor has " + std::to_string(name.text.size()) +
                                        " bytes: at most " + std::to_string(kActorNameMax) + " are possible");
  if (node.value < 0) {
    std::lock_guard lock(mutex_);
    const auto turn = turn_++;  // Also of those before this process has heard of other nodes.
    node = nodes_.empty() ? NodeId(node_) : nodes_[turn % nodes_.size()];
  }
  if (node.value >= kNodesMax)
    return fail(ErrorKind::invalid, "an actor on node " + std::to_string(node.value) + ": a cluster has at most " +
                                        std::to_string(kNodesMax) + ", numbered from 0");
  CreateActor message;
  message.actor = actor_id(node, process_, next_actor_++);
  message.function = std::move(constructor);
  for (auto& argument : arguments) message.arguments.emplace_back(std::move(argument));
  message.name = std::move(name.text);
  message.type = std::move(name.type);
  message.naming = name.rule;
  message.owner = options_.name;
  message.rule = rule;
  message.concurrency = std::move(concurrency);
  message.job = name.job;
  if (name.job.value != 0) {
    std::lock_guard lock(mutex_);
    job_of_.emplace(message.actor, name.job);
  }
  const auto decided = name.rule.claims ? expect_name(message.actor) : nullptr;
  if (const auto pushed = outbox_->push(encode(message), options_.send_patience); !pushed) {
    std::lock_guard lock(mutex_);
    names_.erase(message.actor);
    return tl::unexpected(pushed.error());
  }
  return decided ? await_name(message.actor, decided, name.rule.detached) : Created{message.actor};
}

Result<void> Client::set_executable(const Executable& executable) {
  return outbox_->push(encode(executable), options_.send_patience);
}

Result<std::string> Client::request(const std::string& verb, const std::string& json, Duration timeout) {
  const auto id = next_request_++;
  auto slot = std::make_shared<PendingResult>(TaskId{});
  {
    std::lock_guard lock(mutex_);
    if (ended_) return tl::unexpected(*ended_);
    requests_.emplace(id, slot);
  }
  wire::Message message;
  auto builder = message.root().initRequest();
  builder.setId(id);
  builder.setVerb(verb);
  builder.setJson(json);
  builder.setFrom(options_.name);
  auto pushed = outbox_->push(as_message(message.to_frame()), timeout);
  if (pushed && slot->wait_for(timeout)) return slot->wait().map(from_raw);
  {
    std::lock_guard lock(mutex_);
    requests_.erase(id);
  }
  if (!pushed) return tl::unexpected(pushed.error());
  return fail(ErrorKind::timed_out,
              "the agent at " + options_.agent_address + " did not answer '" + verb + "' in " +
                  std::to_string(std::chrono::duration_cast<std::chrono::seconds>(timeout).count()) + " s");
}

void Client::on_job_event(std::function<void(const wire::Received&)> handler) {
  std::lock_guard lock(mutex_);
  job_event_ = std::move(handler);
}

void Client::on_other(OtherHandler handler) {
  std::lock_guard lock(mutex_);
  other_ = std::move(handler);
}

}  // namespace paceline::actors
