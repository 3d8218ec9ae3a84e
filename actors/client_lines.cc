// How calls go past the agent, and what becomes of those whose line has ended.
#include <sys/eventfd.h>

#include "actors/causes.h"
#include "actors/client.h"
#include "actors/gathering.h"
#include "actors/how_soon.h"
#include "actors/protocol_wire.h"
#include "runtime/base/json.h"
#include "runtime/base/steady_now.h"

namespace paceline::actors {
namespace {

constexpr Duration kLineLook = std::chrono::milliseconds(4);  // How often the agent is asked what became of an actor,
constexpr Duration kLineRetry = std::chrono::milliseconds(1);
constexpr Duration kTasksLook = std::chrono::seconds(1);     // Guests take results in, too, and workers are idle then.
constexpr Duration kLinePatience = std::chrono::seconds(5);  // and how long.

}  // namespace

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
        ++called_;
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
  process::Fd bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell) return;
  guest_bell_ = std::move(bell);
  lines_ = *std::move(lines);
  if (!options_.line_path.empty()) (void)lines_->listen(options_.line_path);  // Else what comes takes the long way.
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
    if (full_.insert(actor).second && !retries_) outbox_->notify();
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
    retries_ = true;
    crowded_ = false;
    push_tasks(now);
    again = how_soon(std::nullopt, earlier(tasks_.next_deadline(), deadlines_.next()), now);
    if (crowded_) again = kLineRetry;
    for (const ActorId actor : std::exchange(full_, {})) send_kept(actor);
    if (!send_signals() || !full_.empty()) again = kLineRetry;
    if (tasks_.is_in_use()) again = std::min(again.value_or(kTasksLook), kTasksLook);
    retries_ = false;
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

}  // namespace paceline::actors
