#include "actors/router/waiting_workers.h"

#include <algorithm>
#include <string>

namespace paceline::actors::router {

void WaitingWorkers::on_waits(WorkerId worker, const std::optional<Awaited>& awaited) {
  waiting_.erase(worker);
  if (!awaited) return;
  waiting_.emplace(worker, Waiting{*awaited, here_.now});
  if (const auto circle = circle_through(worker); !circle.empty()) break_circle(circle);
}

ActorId WaitingWorkers::actor_awaited(const Awaited& awaited) const {
  return awaited.actor.value != 0 ? awaited.actor : calls_.callee_of(awaited.task);
}

/// The worker of this node that is to answer it; 0: none yet.
WorkerId WaitingWorkers::answerer_of(const Awaited& awaited) const {
  if (const ActorId actor = actor_awaited(awaited); actor.value != 0) return workers_.of_actor(actor);
  const auto runner = std::find_if(waiting_.begin(), waiting_.end(),
                                   [&](const auto& entry) { return entry.second.awaited.within == awaited.task; });
  return runner == waiting_.end() ? WorkerId{} : runner->first;
}

/// Those that wait for each other, each for the next one, beginning with `worker`; empty: it does not wait for itself.
std::vector<WorkerId> WaitingWorkers::circle_through(WorkerId worker) const {
  std::vector<WorkerId> circle;
  WorkerId at = worker;
  do {
    const auto found = waiting_.find(at);
    if (found == waiting_.end() || found->second.awaited.task.value == 0) return {};
    circle.push_back(at);
    at = answerer_of(found->second.awaited);
  } while (at != worker && circle.size() <= waiting_.size());
  return at == worker ? circle : std::vector<WorkerId>{};
}

void WaitingWorkers::break_circle(const std::vector<WorkerId>& circle) {
  const auto name_of = [&](WorkerId worker) { return workers_.find(worker)->name; };
  std::string names = name_of(circle.front());
  for (const WorkerId worker : circle) names += " waits for " + name_of(answerer_of(waiting_.at(worker).awaited));
  const Error error{ErrorKind::invalid, "calls that would wait for each other for ever: " + names};
  for (const WorkerId worker : circle) {
    const auto task = waiting_.at(worker).awaited.task;
    CallResult failed{task, {}, tl::unexpected(error)};
    if (const auto call = calls_.end_call(task)) {
      here_.tell(call->owner, call->origin, std::move(failed));
    } else {  // It is a task, or went past this agent.
      here_.tell(worker_peer(worker), here_.options.node, std::move(failed));
    }
  }
}

void WaitingWorkers::add_to(WorkerView& view) const {
  const auto waiting = waiting_.find(view.worker);
  if (waiting == waiting_.end()) return;
  view.waits = waiting->second.awaited;
  view.waits_since = waiting->second.since;
}

}  // namespace paceline::actors::router
