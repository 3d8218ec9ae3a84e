#include "actors/router/actor_calls.h"

#include <algorithm>
#include <utility>

namespace paceline::actors::router {

void ActorCalls::begin(ActorId actor, const RestartRule& rule, bool keeps_results) {
  inboxes_.emplace(actor, Inbox{rule, keeps_results});
}

void ActorCalls::end(ActorId actor, const Error& reason) {
  if (dead_.insert_or_assign(actor, reason).second) dead_order_.push_back(actor);
  while (dead_order_.size() > here_.options.dead_max) {
    dead_.erase(dead_order_.front());
    dead_order_.pop_front();
  }
  const auto inbox = inboxes_.extract(actor);
  if (inbox.empty()) return;
  for (const TaskId task : inbox.mapped().calls) {
    const auto call = in_flight_.extract(task);
    here_.tell(call.mapped().owner, call.mapped().origin, CallResult{task, {}, tl::unexpected(reason)});
  }
}

void ActorCalls::on_death(ActorId actor, const Error& ended) {
  auto& inbox = inboxes_.at(actor);
  auto outcome = inbox.sent.on_death(inbox.rule);
  for (const TaskId task : outcome.failed) {
    if (const auto call = end_call(task))
      here_.tell(call->owner, call->origin, CallResult{task, {}, tl::unexpected(ended)});
  }
  for (auto again = outcome.again.rbegin(); again != outcome.again.rend(); ++again) {
    again->call.resent = again->resent;
    inbox.queue.push_front(std::move(again->call));
  }
}

Error ActorCalls::why_none(ActorId actor) const {
  if (const auto dead = dead_.find(actor); dead != dead_.end()) return dead->second;
  return {ErrorKind::not_found,
          "actor " + to_string(actor) + " does not exist on node " + to_string(here_.options.node)};
}

void ActorCalls::refuse(const Call& call, NodeId from, Error error) const {
  here_.tell(call.owner, from, CallResult{call.task, {}, tl::unexpected(std::move(error))});
}

bool ActorCalls::on_call(Call call, NodeId from) {
  const auto task = call.task;
  const auto actor = call.actor;
  const auto node = node_of(actor);
  const auto no = [&](Error error) {
    refuse(call, from, std::move(error));
    return false;
  };
  if (in_flight_.size() + early_.size() >= here_.options.calls_max) {
    return no({ErrorKind::overloaded, "node " + to_string(here_.options.node) + " has " +
                                          std::to_string(here_.options.calls_max) +
                                          " calls in flight, its bound: wait for some first"});
  }
  if (in_flight_.contains(task)) return no({ErrorKind::invalid, "call id " + to_string(task) + " is in use"});
  if (!here_.is(node)) {
    if (!here_.is(from))
      return no({ErrorKind::invalid, "a call for node " + to_string(node) + " came through the wrong node"});
    const auto owner = call.owner;
    in_flight_.emplace(task, InFlight{owner, from, actor});
    called_.insert(node);
    here_.act(Forward{node, std::move(call), owner});
    return false;
  }
  const auto inbox = inboxes_.find(actor);
  if (inbox == inboxes_.end()) {
    if (has_ended(actor) || process_of(actor) == 0) return no(why_none(actor));
    early_.add(std::move(call), from, here_.now + here_.options.creation_max);
    return false;
  }
  if (call.kill) {  // Before its owner hears of its end.
    here_.tell(call.owner, from, CallResult{task, {}, Bytes{}});
    return true;
  }
  in_flight_.emplace(task, InFlight{call.owner, from, actor});
  inbox->second.calls.insert(task);
  if (inbox->second.queue.empty() && workers_.takes_calls(actor)) {
    send(inbox->second, std::move(call));
  } else {
    inbox->second.queue.push_back(std::move(call));
  }
  return false;
}

bool ActorCalls::on_call_again(Call call, NodeId from) {
  const auto task = call.task;
  const auto known = in_flight_.find(task);
  if (here_.is(node_of(call.actor))) {
    if (known != in_flight_.end() && known->second.actor == call.actor) {
      known->second.origin = from;
      return true;
    }
    const auto& results = inboxes_.at(call.actor).results;
    const auto result = results.find(task);
    if (result != results.end()) here_.tell(call.owner, from, result->second);
    return result != results.end();
  }
  if (!here_.is(from) ||
      (known != in_flight_.end() && (known->second.owner != call.owner || known->second.actor != call.actor)))
    return false;
  const auto owner = call.owner;
  in_flight_.insert_or_assign(task, InFlight{owner, from, call.actor});
  here_.act(Forward{node_of(call.actor), std::move(call), owner});
  return true;
}

void ActorCalls::send(Inbox& inbox, Call call) {
  const auto peer = worker_peer(workers_.of_actor(call.actor));
  if (inbox.rule.restarts != 0) inbox.sent.add({call.task, inbox.rule.call_retries == 0 ? Call{} : call, call.resent});
  here_.act(Send{peer, std::move(call)});
}

void ActorCalls::send_queue(ActorId actor) {
  const auto found = inboxes_.find(actor);
  if (found == inboxes_.end() || !workers_.takes_calls(actor)) return;
  auto& inbox = found->second;
  for (std::size_t sent = 0; sent < here_.options.calls_a_turn && !inbox.queue.empty(); ++sent) {
    send(inbox, std::move(inbox.queue.front()));
    inbox.queue.pop_front();
  }
  if (!inbox.queue.empty()) unsent_.insert(actor);
}

void ActorCalls::on_signal(Signal signal, NodeId from) {
  const auto inbox = inboxes_.find(signal.actor);
  const auto peer = worker_peer(workers_.of_actor(signal.actor));
  if (signal.kind == Signal::Kind::taken) {
    if (inbox != inboxes_.end() && workers_.takes_calls(signal.actor)) here_.act(Send{peer, std::move(signal)});
    return;
  }
  const auto is_it = [&](const Call& call) { return call.task == signal.task && call.owner == signal.owner; };
  if (inbox == inboxes_.end()) {  // Not yet; else its owner hears, or has heard, of its end.
    if (!early_.forget([&](const auto& early) { return is_it(early.call); })) return;
  } else {
    auto& queue = inbox->second.queue;
    const auto waits = std::find_if(queue.begin(), queue.end(), is_it);
    if (waits == queue.end()) {
      here_.act(Send{peer, std::move(signal)});
      return;
    }
    queue.erase(waits);
    (void)end_call(signal.task);
  }
  here_.tell(
      signal.owner, from,
      CallResult{signal.task,
                 {},
                 fail(ErrorKind::cancelled, "call " + to_string(signal.task) + " was cancelled before it began")});
}

bool ActorCalls::on_result(CallResult& result, const std::string& from) {
  const auto found = in_flight_.find(result.task);
  if (found == in_flight_.end()) return false;
  const auto call = found->second;
  const bool is_elsewhere = !here_.is(node_of(call.actor));
  if (!is_elsewhere && from != worker_peer(workers_.of_actor(call.actor))) return true;  // It was not asked.
  if (result.item == 0) {
    (void)end_call(result.task);
    if (const auto inbox = inboxes_.find(call.actor); inbox != inboxes_.end() && inbox->second.keeps_results)
      inbox->second.results.insert_or_assign(result.task, result);
  }
  here_.tell(call.owner, call.origin, std::move(result));
  return true;
}

std::optional<ActorCalls::InFlight> ActorCalls::end_call(TaskId task) {
  auto call = in_flight_.extract(task);
  if (call.empty()) return std::nullopt;
  if (const auto inbox = inboxes_.find(call.mapped().actor); inbox != inboxes_.end()) {
    inbox->second.calls.erase(task);
    inbox->second.sent.remove(task);
  }
  return std::move(call.mapped());
}

template <class Over>
void ActorCalls::fail_elsewhere(const Error& reason, Over over) {
  std::erase_if(in_flight_, [&](const auto& entry) {
    if (!over(entry.second.actor)) return false;
    here_.tell(entry.second.owner, entry.second.origin, CallResult{entry.first, {}, tl::unexpected(reason)});
    return true;
  });
}

void ActorCalls::on_actor_lost(ActorId gone, const Error& reason) {
  fail_elsewhere(reason, [&](ActorId actor) { return actor == gone; });
}

void ActorCalls::on_node_lost(NodeId node, const Error& reason) {
  fail_elsewhere(reason, [&](ActorId actor) { return node_of(actor) == node; });
  called_.erase(node);
  (void)early_.forget([&](const auto& early) { return early.from == node; });
}

void ActorCalls::on_owner_gone(const std::string& owner) {
  (void)early_.forget([&](const auto& early) { return early.call.owner == owner && here_.is(early.from); });
}

void ActorCalls::tick() {
  for (const ActorId actor : std::exchange(unsent_, {})) send_queue(actor);
  for (const auto& [call, from] : early_.take_late(here_.now)) refuse(call, from, why_none(call.actor));
}

std::optional<Instant> ActorCalls::next_deadline() const {
  return unsent_.empty() ? early_.next_deadline() : here_.now;
}

ActorId ActorCalls::callee_of(TaskId task) const {
  const auto call = in_flight_.find(task);
  return call == in_flight_.end() ? ActorId{} : call->second.actor;
}

void ActorCalls::add_to(WorkerView& view) const {
  const auto inbox = inboxes_.find(view.actor);
  if (inbox == inboxes_.end()) return;
  view.calls = inbox->second.calls.size();
  view.queued = inbox->second.queue.size();
}

}  // namespace paceline::actors::router
