#include "actors/client.h"

#include <poll.h>
#include <unistd.h>

#include <utility>

#include "actors/cancel.h"
#include "actors/causes.h"
#include "actors/protocol_wire.h"
#include "runtime/base/json.h"
#include "runtime/base/steady_now.h"
#include "runtime/base/turn_budget.h"

namespace paceline::actors {
namespace {

constexpr const char* kAgent = "agent";
constexpr int kLineAfter = 8;                                 // Results: who calls so often calls again.
constexpr Duration kLineLook = std::chrono::milliseconds(4);  // How often the agent is asked what became of an actor,
constexpr Duration kLineRetry = std::chrono::milliseconds(1);
constexpr Duration kLinePatience = std::chrono::seconds(5);  // and how long.

Bytes to_raw(const std::string& s) {
  const auto* begin = reinterpret_cast<const std::byte*>(s.data());
  return {begin, begin + s.size()};
}

/// How soon, of two: a duration from now, and an instant.
std::optional<Duration> earlier(std::optional<Duration> one, std::optional<Instant> other, Instant now) {
  if (!other) return one;
  const Duration left = std::max(*other - now, Duration::zero());
  return one ? std::min(*one, left) : left;
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
    : options_(std::move(options)),
      factory_(std::move(factory)),
      job_event_(options_.on_job_event),
      other_(options_.on_other) {
  open_lines();
  thread_ = std::thread([this] { run(); });
}

/// Without lines all calls go through the agent: of a process that makes none, or without shared memory.
void Client::open_lines() {
  if (options_.executable.path.empty() || !channel::shares_memory()) return;
  const auto hear = [](channel::Message& message, const auto& take) {
    auto received = message.empty() ? fail(ErrorKind::invalid, "") : wire::Received::parse(std::move(message[0]));
    if (received) (void)received->visit(take);  // What is no message of ours is nobody's.
  };
  channel::Lines::Listener listener;
  listener.called = [this, hear](const std::string& peer, channel::Message message) {
    hear(message, [&](wire::Envelope::Reader root) -> Result<void> {
      if (root.isSignal()) {
        return decode(root.getSignal()).map([&](Signal signal) {
          signal.owner = peer;
          if (options_.on_signal) options_.on_signal(*this, signal);
        });
      }
      if (!root.isCall()) return {};
      return decode(root.getCall()).map([&](Call call) {
        call.owner = peer;
        call.by_line = true;
        on_call(std::move(call));
      });
    });
  };
  listener.answered = [this, hear](const std::string&, channel::Message message) {
    hear(message, [&](wire::Envelope::Reader root) -> Result<void> {
      if (!root.isCallResult()) return {};
      return decode(root.getCallResult(), message).map([this](CallResult result) { on_result(std::move(result)); });
    });
  };
  listener.ended = [this](const std::string& peer, std::size_t untaken) { on_line_ended(peer, untaken); };
  auto lines = channel::Lines::create(options_.name, std::move(listener));
  if (!lines) return;
  lines_ = *std::move(lines);
  if (!options_.line_path.empty()) (void)lines_->listen(options_.line_path);  // Else what comes takes the long way.
}

void Client::close() {
  stopping_ = true;
  outbox_->close();
  if (thread_.joinable()) thread_.join();
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
  auto own_turn = lines_turn_.take();
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
    const auto again = earlier(look_after_lines(now), options_.on_turn ? options_.on_turn(*this) : std::nullopt, now);
    pollfd waits[4] = {{transport.descriptor(), POLLIN, 0},
                       {outbox_->descriptor(), POLLIN, 0},
                       {options_.hang_up, POLLRDHUP, 0},
                       {lines_ ? lines_->descriptor() : -1, POLLIN, 0}};
    Duration timeout = std::min<Duration>(again.value_or(std::chrono::seconds(1)), std::chrono::minutes(1));
    // A transport without room or without a descriptor has to be asked again.
    if (!sent_all || transport.descriptor() < 0 || last) timeout = std::chrono::milliseconds(1);
    own_turn.unlock();
    ::poll(waits, 4, more ? 0 : static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(timeout).count()));
    own_turn = lines_turn_.take();
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
        const JobId job(root.getJobEvent().getJob());
        auto json = wire::text(root.getJobEvent().getJson());
        if (auto handler = copy_of(job_event_)) handler(job, std::move(json));
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

/// A task for this worker that came through agents.
void Client::on_push(PushTask push) {
  auto received = wire::Received::parse(std::move(push.call));
  if (!received) return;
  (void)received->visit([&](wire::Envelope::Reader root) -> Result<void> {
    if (!root.isCall()) return {};
    return decode(root.getCall()).map([&](Call call) {
      call.owner = push.owner;
      on_call(std::move(call));
    });
  });
}

void Client::on_loan(const Loan& loan) {
  switch (loan.kind) {
    case Loan::Kind::lent: {
      const bool line = open_line_to(loan.worker);
      std::lock_guard lock(mutex_);
      const Instant now = steady_now();
      tasks_.on_lent(loan.worker, loan.shape, line, now);
      return push_tasks(now);
    }
    case Loan::Kind::gone:
      if (lines_) lines_->hear_out(worker_peer(loan.worker));
      return on_worker_gone(loan.worker, loan.error);
    case Loan::Kind::recalled: {
      std::lock_guard lock(mutex_);
      tasks_.on_recalled(loan.shape, node_of(loan.worker), loan.count);
      return push_tasks(steady_now());
    }
    case Loan::Kind::refused: {
      std::vector<PendingResultPtr> failed;
      {
        std::lock_guard lock(mutex_);
        failed = tasks_.on_refused(loan.shape);
        room_.notify_all();
      }
      for (const auto& result : failed) result->complete(tl::unexpected(loan.error));
      return;
    }
  }
}

/// Of this node's workers only, and as long as there is room for lines; else tasks go through the agent.
bool Client::open_line_to(WorkerId worker) {
  if (!lines_ || node_of(worker) != node()) return false;
  {
    std::lock_guard lock(mutex_);
    if (task_lines_.contains(worker)) return true;
  }
  const auto path = line_path_beside(options_.agent_address, worker);
  if (path.empty() || !lines_->connect(worker_peer(worker), path)) return false;
  std::lock_guard lock(mutex_);
  task_lines_.insert(worker);
  return true;
}

void Client::on_worker_gone(WorkerId worker, const Error& error) {
  std::vector<OwnedTasks::Failed> failed;
  std::vector<PendingResultPtr> over;
  {
    std::lock_guard lock(mutex_);
    failed = tasks_.on_gone(worker);
    for (const auto& one : failed) deadlines_.remove(one.result->task());
    over = tasks_.take_cancelled();
    room_.notify_all();
    push_tasks(steady_now());
  }
  end_cancelled(std::move(over));
  for (const auto& one : failed) one.result->complete(tl::unexpected(of_task(error, name_in(one.call))));
}

/// What may go to workers now, and what the agent is to hear. Under the lock.
void Client::push_tasks(Instant now) {
  while (auto push = tasks_.next(now)) {
    if (push->by_line) {
      if (lines_->send_out(worker_peer(push->worker), {&push->call, 1})) continue;
      tasks_.put_back(push->task);
      if (!std::exchange(crowded_, true)) outbox_->notify();
      break;
    }
    outbox_->push_anyway(encode(PushTask{push->worker, push->task, options_.name, push->call}));
  }
  while (auto word = tasks_.next_word(now)) {
    word->owner = options_.name;
    outbox_->push_anyway(encode(*word));
  }
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

/// What may leave now. Under the lock, so that nothing overtakes it.
void Client::send_kept(ActorId actor) {
  while (auto leaving = windows_.next(actor)) {
    if (leaving->fence) add_fence(actor, *leaving);
    if (leaving->way == CallWindows::Way::agent) {
      outbox_->push_anyway(leaving->resent == 0 ? as_message(std::move(leaving->call))
                                                : resent(leaving->call, leaving->resent));
      continue;
    }
    auto message = as_message(std::move(leaving->call));
    const bool sent = lines_->send_out(line_to_[actor].peer, message);
    leaving->call = std::move(message.front());
    if (sent) {
      windows_.on_sent(actor, *std::move(leaving));
      continue;
    }
    if (leaving->fence) in_flight_.erase(leaving->task);
    windows_.put_back(actor, *std::move(leaving));
    if (full_.insert(actor).second) outbox_->notify();
    return;
  }
}

void Client::add_fence(ActorId actor, CallWindows::Leaving& leaving) {
  Call call;
  call.task = leaving.task = task_id(process_, next_task_++);
  call.actor = actor;
  call.fence = true;
  leaving.call = std::move(encode(call).front());
  in_flight_.emplace(call.task,
                     InFlight{std::make_shared<PendingResult>(call.task, actor), actor, leaving.call.size()});
  windows_.add_fence(actor, leaving);
}

void Client::ask_for_line(ActorId actor, Line& line) {
  if (line.state == Line::State::none) line.state = Line::State::asked;
  line.ask_again.reset();
  const auto id = next_request_++;
  line_requests_.emplace(id, actor);
  wire::Message message;
  auto request = message.root().initRequest();
  request.setId(id);
  request.setVerb(kLineVerb);
  request.setJson(json_text(nlohmann::json{{"actor", actor.value}}));
  request.setFrom(options_.name);
  outbox_->push_anyway(as_message(message.to_frame()));
}

/// The agent's word of where an actor of this node is, or of how it ended.
void Client::on_line(ActorId actor, const Result<std::string>& reply) {
  const auto parsed = reply ? parse_json(*reply) : nlohmann::json();
  const auto told = parsed.is_object() ? parsed : nlohmann::json::object();
  std::vector<PendingResultPtr> unknown;
  {
    std::lock_guard lock(mutex_);
    const auto found = line_to_.find(actor);
    if (found == line_to_.end()) return;
    Line& line = found->second;
    if (line.state == Line::State::asked) {
      const auto peer = told.value("peer", "");
      if (told.contains("may_restart"))
        line.rule = RestartRule{told.value("may_restart", 0), told.value("call_retries", 0)};
      line.restarts = told.value("restarts", 0);
      const auto opened =
          peer.empty() ? fail(ErrorKind::disconnected, "") : lines_->connect(peer, told.value("path", ""));
      const bool has_another = line.rule && !opened && opened.error().kind == ErrorKind::disconnected;
      line.state = opened ? Line::State::open : has_another ? Line::State::none : Line::State::refused;
      line.results = 0;
      if (!opened) return;
      line.peer = peer;
      windows_.set_line(actor, true);
      if (line.rule) windows_.set_rule(actor, *line.rule);
      return send_kept(actor);
    }
    if (line.state != Line::State::lost) return;
    if (reply && told.value("restarts", 0) <= line.restarts) {  // It has not heard of it yet.
      line.ask_again = steady_now() + kLineLook;
      return;
    }
    if (reply) unknown = on_restarted(actor, line);
  }
  if (!reply) return fail_calls_to(actor, reply.error());
  const Error ended = began({ErrorKind::disconnected, told.value("ended", "")},
                            {told.value("ended_node", -1), told.value("ended_worker", ""), told.value("ended_log", "")},
                            told.value("ended_what", ""), told.value("ended_how", ""));
  for (auto& result : unknown) result->complete(tl::unexpected(ended));
}

/// The actor has another process. Returns the calls of whose fate nobody knows, and that are not sent again.
std::vector<PendingResultPtr> Client::on_restarted(ActorId actor, Line& line) {
  std::vector<PendingResultPtr> unknown;
  for (const TaskId task : windows_.on_restart(actor)) {
    const auto call = in_flight_.extract(task);
    if (call.empty()) continue;
    windows_.on_result(actor, task, call.mapped().bytes, CallWindows::Way::line);
    unknown.push_back(std::move(call.mapped().result));
  }
  line = Line{};
  --lost_;
  send_kept(actor);
  room_.notify_all();
  return unknown;
}

void Client::on_line_ended(const std::string& peer, std::size_t untaken) {
  std::lock_guard lock(mutex_);
  if (const auto worker = worker_named(peer); worker && task_lines_.erase(*worker) > 0) {
    const Instant now = steady_now();
    tasks_.on_line_ended(*worker, now);
    return push_tasks(now);
  }
  for (auto& [actor, line] : line_to_) {
    if (line.state != Line::State::open || line.peer != peer) continue;
    windows_.set_line(actor, false);
    line.peer.clear();
    if (line.rule) windows_.on_line_lost(actor, untaken);
    if (!line.rule && !windows_.on_line(actor)) {
      line.state = Line::State::refused;
      return send_kept(actor);
    }
    line.state = Line::State::lost;
    line.give_up = steady_now() + kLinePatience;
    ++lost_;
    return ask_for_line(actor, line);
  }
}

/// Tries lines again that were full (results make room before the room shows), and those whose calls wait for the
/// agent's word of how the actor ended. How soon that has to be done again.
std::optional<Duration> Client::look_after_lines(Instant now) {
  std::vector<ActorId> given_up;
  std::vector<WorkerId> silent;
  std::vector<Deadlines::Late> late;
  std::optional<Duration> again;
  {
    std::lock_guard lock(mutex_);
    late = cancel_late(now);
    silent = tasks_.silent(now);
    crowded_ = false;
    push_tasks(now);
    again = earlier(earlier(std::nullopt, tasks_.next_deadline(), now), deadlines_.next(), now);
    if (crowded_) again = kLineRetry;
    for (const ActorId actor : std::exchange(full_, {})) send_kept(actor);
    if (!full_.empty()) again = kLineRetry;
    if (lost_ > 0) again = std::min(again.value_or(kLineLook), kLineLook);
    for (auto& [actor, line] : line_to_) {
      if (lost_ == 0) break;
      if (line.state != Line::State::lost) continue;
      if (now >= line.give_up)
        given_up.push_back(actor);
      else if (line.ask_again && now >= *line.ask_again)
        ask_for_line(actor, line);
    }
  }
  for (const auto& one : late) one.result->complete(tl::unexpected(too_late(*one.result, one.name, one.timeout)));
  for (const WorkerId worker : silent)
    on_worker_gone(worker, began({ErrorKind::disconnected, "the line to worker " + to_string(worker) +
                                                               " is cut: whether its task has run is unknown"},
                                 place_of(worker), {}, "the line to it is cut"));
  for (const ActorId actor : given_up)
    fail_calls_to(actor, {ErrorKind::disconnected, "the line to actor " + to_string(actor) +
                                                       " is cut: whether it has done what was called is unknown"});
  return again;
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
    for (auto& [task, call] : in_flight_) failed.push_back(std::move(call.result));
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
    deferred_.insert(result->task());
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

void Client::send_task(const Call& call, PendingResultPtr result, const TaskNeeds& needs, Duration patience) {
  auto frame = std::move(encode(call).front());
  frame.shrink_to_fit();
  std::unique_lock lock(mutex_);
  const auto refused = wait_for_room(lock, ActorId{}, patience, [this] { return tasks_.has_room(); });
  if (is_wanted_no_more(call.task, patience)) return;
  if (needs.timeout && !deadlines_.has(call.task)) return;  // It is late already.
  if (!refused) {
    tasks_.add(call.task, needs.shape, needs.retries, std::move(frame), std::move(result));
    return push_tasks(steady_now());
  }
  lock.unlock();
  result->complete(tl::unexpected(*refused));
}

/// A call or a task whose arguments have come (it has no patience) may have been cancelled meanwhile. Under the lock.
bool Client::is_wanted_no_more(TaskId task, Duration patience) {
  return patience == Duration::zero() && deferred_.erase(task) == 0;
}

void Client::end_cancelled(std::vector<PendingResultPtr> over) {
  for (const auto& result : over) {
    result->complete(fail(ErrorKind::cancelled, "task " + to_string(result->task()) + " was cancelled"));
  }
}

/// Tasks that were not over in their time, for the caller to end. Under the lock.
std::vector<Deadlines::Late> Client::cancel_late(Instant now) {
  auto late = deadlines_.take_late(now);
  for (const auto& one : late)
    if (deferred_.erase(one.result->task()) == 0) (void)cancel_task(one.result->task(), false);
  return late;
}

/// Under the lock. Nothing: it is no task, or over.
std::optional<Cancelled> Client::cancel_task(TaskId task, bool force) {
  const auto with = tasks_.cancel(task);
  if (!with) return std::nullopt;
  (void)tasks_.take_cancelled();
  room_.notify_all();
  if (with->worker.value == 0) return Cancelled::ended;
  signal_task(task, *with, force ? Signal::Kind::end : Signal::Kind::cancel);
  return Cancelled::told;
}

Result<Cancelled> Client::cancel(const PendingResultPtr& result, bool force) {
  const TaskId task = result->task();
  const ActorId actor = result->actor();
  if (force && actor.value != 0 && !result->local())
    return fail(
        ErrorKind::invalid,
        "a call of an actor cannot be cancelled by force, which would end the actor: cancel it without force, or "
        "let the actor's last handle go");
  bool ended = result->local();
  if (!result->ready() && !ended) {
    std::lock_guard lock(mutex_);
    if (deferred_.erase(task) > 0) {
      ended = true;
    } else if (in_flight_.contains(task)) {
      ended = windows_.drop(actor, task);
      if (ended) {
        in_flight_.erase(task);
        room_.notify_all();
      } else {
        signal_call(task, actor, Signal::Kind::cancel);
        return Cancelled::told;
      }
    } else if (const auto found = cancel_task(task, force)) {
      if (*found == Cancelled::told) return Cancelled::told;
      ended = true;
      push_tasks(steady_now());
    }
  }
  const std::string what = actor.value == 0 ? "task " : "call ";
  if (ended && result->complete(fail(ErrorKind::cancelled, what + to_string(task) + " was cancelled before it began")))
    return Cancelled::ended;
  if (!result->ready()) return Cancelled::done;  // It is just arriving.
  const auto& value = result->wait();
  return !value && value.error().kind == ErrorKind::cancelled ? Cancelled::already : Cancelled::done;
}

/// Under the lock.
void Client::signal_call(TaskId task, ActorId actor, Signal::Kind kind, std::uint64_t taken) {
  const auto line = line_to_.find(actor);
  send_signal({task, WorkerId{}, actor, options_.name, kind, taken},
              line != line_to_.end() && windows_.on_line(actor) ? line->second.peer : std::string());
}
void Client::signal_task(TaskId task, const OwnedTasks::With& with, Signal::Kind kind, std::uint64_t taken) {
  send_signal({task, with.worker, ActorId{}, options_.name, kind, taken},
              with.by_line ? worker_peer(with.worker) : std::string());
}

/// The way that the call has gone, so that it is there first; where that has no room, it may be overtaken.
void Client::send_signal(const Signal& signal, const std::string& line) {
  auto message = encode(signal);
  if (line.empty() || !lines_->send_out(line, message)) outbox_->push_anyway(std::move(message));
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
    node = nodes_.empty() ? NodeId(node_) : nodes_[turn_++ % nodes_.size()];
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

void Client::on_job_event(std::function<void(JobId, std::string)> handler) {
  std::lock_guard lock(mutex_);
  job_event_ = std::move(handler);
}

void Client::on_other(OtherHandler handler) {
  std::lock_guard lock(mutex_);
  other_ = std::move(handler);
}

}  // namespace paceline::actors
