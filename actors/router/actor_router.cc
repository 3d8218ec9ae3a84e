#include "actors/router/actor_router.h"

#include <utility>

#include "actors/causes.h"

namespace paceline::actors {

std::optional<Instant> ActorRouter::next_deadline() const {
  return earlier(calls_.next_deadline(), earlier(loans_.lending().next_deadline(), actors_.next_deadline()));
}

ActorRouter::Actions ActorRouter::tick(Instant now) {
  at(now);
  calls_.tick();
  loans_.tick();
  actors_.tick();
  return take_actions();
}

ActorRouter::Actions ActorRouter::on_create(CreateActor create, NodeId from) {
  const auto node = node_of(create.actor);
  const auto owner = create.owner;
  const auto refuse = [&](const Error& error) {
    actors_.refuse(create, from, error);
    return take_actions();
  };
  if (here_.is(from)) {
    const auto* const executable = workers_.executable_of(owner, workers_.root_of(owner, from));
    if (!executable) return refuse({ErrorKind::invalid, owner + router::kUnsaid});
    create.executable = *executable;
  }
  if (here_.is(node)) {
    if (const auto error = actors_.why_not(create.actor)) return refuse(*error);
    if (here_.is(from)) remote_.note_hindrance(create);
    actors_.on_create(std::move(create), from);
  } else if (here_.is(from)) {
    remote_.note_hindrance(create);
    remote_.add(create.actor, {owner, create.naming.claims ? create.name : "", create.naming.detached});
    workers_.note_owner(owner, from);
    here_.act(Forward{node, std::move(create), owner});
  } else {
    return refuse({ErrorKind::invalid, "node " + to_string(node) + " was asked for through the wrong node"});
  }
  return take_actions();
}

ActorRouter::Actions ActorRouter::on_call_again(Call call, NodeId from, const std::set<JobId>& jobs) {
  const auto task = call.task;
  const auto actor = call.actor;
  const auto owner = call.owner;
  Result<void> taken;
  if (here_.is(node_of(actor))) {
    taken = actors_.on_call_again(std::move(call), from, jobs);
  } else if (calls_.on_call_again(std::move(call), from)) {
    remote_.add(actor, {owner});
    workers_.note_owner(owner, from);
  } else {
    taken = fail(ErrorKind::invalid, "call " + to_string(task) + " cannot be made again through this node");
  }
  if (!taken) here_.tell(owner, from, CallResult{task, {}, tl::unexpected(taken.error())});
  return take_actions();
}

ActorRouter::Actions ActorRouter::on_worker_ready(WorkerId id) {
  auto* const worker = workers_.find(id);
  if (!worker || worker->ending || std::exchange(worker->ready, true)) return take_actions();
  if (worker->actor.value != 0) {
    actors_.on_worker_ready(worker->actor);
  } else {
    loans_.on_worker_ready(id);
  }
  return take_actions();
}

ActorRouter::Actions ActorRouter::on_actor_ready(ActorReady ready) {
  here_.is(node_of(ready.actor)) ? actors_.on_actor_ready(std::move(ready)) : hear_of_remote(std::move(ready));
  return take_actions();
}

void ActorRouter::hear_of_remote(ActorReady ready) {
  remote_.on_actor_ready(ready);
  if (ready.dead || !ready.error.text.empty()) calls_.on_actor_lost(ready.actor, ready.error);
  here_.act(Send{ready.owner, std::move(ready)});
}

void ActorRouter::on_leaving(WorkerId id) {
  if (const auto* const worker = workers_.find(id)) actors_.on_leaving(worker->actor);
}

ActorRouter::Actions ActorRouter::on_result(CallResult result, const std::string& from) {
  if (result.by_line) {
    here_.act(Send{result.owner, std::move(result)});
  } else if (!calls_.on_result(result, from)) {
    loans_.on_result(std::move(result), from);
  }
  return take_actions();
}

ActorRouter::Actions ActorRouter::on_signal(Signal signal, NodeId from) {
  const bool is_call = signal.worker.value == 0;
  if (const NodeId node = is_call ? node_of(signal.actor) : node_of(signal.worker); !here_.is(node)) {
    const auto owner = signal.owner;
    if (here_.is(from)) here_.act(Forward{node, std::move(signal), owner});
  } else {
    is_call ? calls_.on_signal(std::move(signal), from) : loans_.on_signal(std::move(signal), from);
  }
  return take_actions();
}

ActorRouter::Actions ActorRouter::on_node(NodeId node, const Capacity& has) {
  if (!here_.is(node)) loans_.on_node(node, has);
  return take_actions();
}

ActorRouter::Actions ActorRouter::on_worker_gone(WorkerId id, const std::string& how, const std::string& log) {
  const auto worker = workers_.take(id);
  if (!worker) return {};
  waiting_.on_worker_gone(id);
  if (worker->actor.value != 0) {
    actors_.on_worker_gone(worker->actor, id, how, log);
  } else {
    loans_.on_worker_gone(id, *worker, how, log);
  }
  loans_.on_owner_gone({worker_peer(id), here_.options.node}, worker->root);
  lose_owner(worker_peer(id));
  loans_.end_root_if_unused(worker->root);
  loans_.dispatch();
  return take_actions();
}

ActorRouter::Actions ActorRouter::end_worker(WorkerId id, const std::string& why) {
  const auto* const worker = workers_.find(id);
  if (worker && actors_.find(worker->actor)) actors_.end_actor(worker->actor, ErrorKind::cancelled, why, true, why);
  workers_.kill(id, why);
  return take_actions();
}

bool ActorRouter::will_restart(WorkerId id) const {
  const auto* const worker = workers_.find(id);
  return worker && actors_.will_restart(worker->actor);
}

ActorRouter::Actions ActorRouter::replace_worker(WorkerId id, const std::string& why) {
  if (workers_.find(id)) here_.act(Kill{id, why});
  return take_actions();
}

ActorRouter::Actions ActorRouter::on_waits(WorkerId worker, std::optional<Awaited> awaited) {
  if (!workers_.find(worker)) return take_actions();
  loans_.on_waits(worker, awaited.has_value());
  waiting_.on_waits(worker, awaited);
  loans_.dispatch();
  return take_actions();
}

ActorRouter::Actions ActorRouter::on_release(const std::string& owner, const Release& release, NodeId from) {
  for (const ActorId id : release.actors) {
    remote_.release(id, owner, release.owner_died);
    actors_.release(id, owner, from, release.owner_died);
  }
  return take_actions();
}

void ActorRouter::lose_owner(const std::string& owner) {
  const NodeId node = here_.options.node;
  if (auto* const worker = workers_.find(worker_named(owner).value_or(WorkerId{}))) worker->cut_off = true;
  calls_.on_owner_gone(owner);
  actors_.on_owner_gone(owner);
  remote_.on_owner_gone(owner);
  loans_.on_owner_gone({owner, node}, workers_.root_of(owner, node));
  workers_.on_owner_gone(owner, node);
  loans_.end_root_if_unused(owner);
  loans_.dispatch();
}

bool ActorRouter::owns_actors_on(NodeId node) const {
  return calls_.called().contains(node) || !remote_.on(node).empty() || !loans_.lending().lent_elsewhere(node).empty();
}

ActorRouter::Actions ActorRouter::on_node_gone(NodeId node, const std::string& how, const std::set<JobId>& jobs) {
  const auto reason = began({ErrorKind::disconnected, "node " + to_string(node) + " is gone: " + how}, {node.value}, {},
                            "its node is gone: " + how);
  for (const auto& [id, owner] : remote_.on(node)) hear_of_remote({id, owner, true, reason});
  calls_.on_node_lost(node, reason);
  loans_.on_node_lost(node, reason);
  remote_.on_node_lost(node);
  actors_.on_node_lost(node, jobs);
  return take_actions();
}

ActorRouter::Actions ActorRouter::on_name_lost(ActorId id) {
  if (has_name(id))
    actors_.end_actor(id, ErrorKind::cancelled, "its node was cut off, and another actor has got its name meanwhile",
                      true, {});
  return take_actions();
}

std::vector<ActorRouter::WorkerView> ActorRouter::workers() const {
  auto views = workers_.views();
  for (auto& view : views) {
    actors_.add_to(view);
    calls_.add_to(view);
    loans_.add_to(view);
    waiting_.add_to(view);
  }
  return views;
}

ActorRouter::Warn ActorRouter::warning_about(WorkerId id, const std::string& what) const {
  const auto name = to_string(place_of(id)) + " ";
  const auto* const worker = workers_.find(id);
  if (!worker) return {{}, {}, name + what};
  const auto* const actor = actors_.find(worker->actor);
  return {worker->output.driver, worker->output.driver_node,
          name + "(" + (actor ? actor->described() : "runs tasks") + ") " + what};
}

/// An actor of another node has no name here but one that it claims.
std::string ActorRouter::describe_awaited(const Awaited& awaited) const {
  if (awaited.task.value == 0) return "a result, with a deadline";
  const ActorId id = actor_awaited(awaited);
  if (id.value == 0) return "a task";
  if (const auto* const actor = actors_.find(id)) return actor->described();
  const auto name = remote_.name_of(id);
  return name.empty() ? "actor " + to_string(id) : "actor '" + name + "'";
}

std::string ActorRouter::program_of(const std::string& owner, const std::string& root) const {
  const auto* const executable = workers_.executable_of(owner, root);
  return executable ? executable->path : std::string();
}

ActorId ActorRouter::restartable_of(WorkerId id) const {
  const auto* const worker = workers_.find(id);
  const auto* const actor = worker && workers_.of_actor(worker->actor) == id ? actors_.find(worker->actor) : nullptr;
  return actor && actor->restartable() ? worker->actor : ActorId{};
}

Result<ActorRouter::LineTo> ActorRouter::line_to(ActorId id) const {
  if (!here_.is(node_of(id))) return LineTo{};
  const auto* const actor = actors_.find(id);
  if (!actor) return tl::unexpected(calls_.why_none(id));
  return LineTo{workers_.takes_calls(id) ? workers_.of_actor(id) : WorkerId{}, actor->create.rule, actor->restarts,
                actor->ended};
}

}  // namespace paceline::actors
