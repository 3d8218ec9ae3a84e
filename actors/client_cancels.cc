// What is not wanted any more.
#include "actors/cancel.h"
#include "actors/client.h"
#include "actors/protocol_wire.h"
#include "runtime/base/steady_now.h"

namespace paceline::actors {

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

/// Somebody wants a task or a call of this process's to be cancelled.
void Client::on_wish(const Signal& wish) {
  PendingResultPtr result;
  {
    std::lock_guard lock(mutex_);
    if (const auto call = in_flight_.find(wish.task); call != in_flight_.end()) result = call->second.result;
    if (const auto call = deferred_.find(wish.task); call != deferred_.end()) result = call->second;
    if (!result) result = tasks_.result_of(wish.task);
  }
  if (result) (void)cancel(result, wish.kind == Signal::Kind::end && result->actor().value == 0);
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

/// The way that the call has gone, so that it is there first. Under the lock.
void Client::send_signal(const Signal& signal, const std::string& line) {
  auto message = encode(signal);
  if (line.empty()) return outbox_->push_anyway(std::move(message));
  signals_[line].push_back(std::move(message));
  if (!send_signals() && !retries_) outbox_->notify();
}

/// False: a line has no room for one.
bool Client::send_signals() {
  for (auto line = signals_.begin(); line != signals_.end();) {
    auto& [peer, messages] = *line;
    while (!messages.empty()) {
      const bool sent = lines_->send_out(peer, messages.front());
      if (!sent && lines_->has_out(peer)) break;
      if (!sent) outbox_->push_anyway(std::move(messages.front()));
      messages.pop_front();
    }
    line = messages.empty() ? signals_.erase(line) : std::next(line);
  }
  return signals_.empty();
}

}  // namespace paceline::actors
