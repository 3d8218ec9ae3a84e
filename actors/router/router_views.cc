// What there is to be seen of a node's workers and of what they wait for.
#include "actors/router/actor_router.h"

namespace paceline::actors {

std::vector<ActorRouter::WorkerView> ActorRouter::workers() const {
  std::vector<WorkerView> views;
  for (const auto& [id, worker] : workers_) {
    auto& view = views.emplace_back();
    view.worker = id;
    view.root = worker.root;
    view.name = worker.name;
    view.actor = worker.actor;
    view.ready = worker.ready;
    view.ending = worker.ending;
    view.started = worker.started;
    view.waits = worker.waits;
    view.waits_since = worker.waits_since;
    if (const auto* const lent = lending_.lent(id)) {
      view.lent = *lent;
      view.lent_since = lending_.lent_since(id).value_or(now_);
    }
    const auto actor = actors_.find(worker.actor);
    if (actor == actors_.end()) continue;
    const auto& create = actor->second.create;
    view.calls = actor->second.calls.size();
    view.queued = actor->second.queue.size();
    view.restarts = actor->second.restarts;
    view.restarts_max = create.rule.restarts;
    view.actor_name = create.name;
    view.type = create.type;
    view.owner = create.owner;
    view.detached = create.naming.detached;
    view.constructed = actor->second.constructed;
  }
  return views;
}

ActorId ActorRouter::actor_awaited(const Awaited& awaited) const {
  if (awaited.actor.value != 0) return awaited.actor;
  const auto call = in_flight_.find(awaited.task);
  return call == in_flight_.end() ? ActorId{} : call->second.actor;
}

/// An actor of another node has no name here but one that it claims.
std::string ActorRouter::describe_awaited(const Awaited& awaited) const {
  if (awaited.task.value == 0) return "a result, with a deadline";
  const ActorId id = actor_awaited(awaited);
  if (id.value == 0) return "a task";
  if (const auto actor = actors_.find(id); actor != actors_.end()) return describe(actor->second);
  const auto remote = remote_.find(id);
  return remote == remote_.end() || remote->second.name.empty() ? "actor " + to_string(id)
                                                                : "actor '" + remote->second.name + "'";
}

std::string ActorRouter::program_of(const std::string& owner, const std::string& root) const {
  const auto* const executable = executable_of(owner, root);
  return executable ? executable->path : std::string();
}

}  // namespace paceline::actors
