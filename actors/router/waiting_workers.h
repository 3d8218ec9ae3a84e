#pragma once

#include <map>
#include <optional>
#include <vector>

#include "actors/router/actor_calls.h"

namespace paceline::actors::router {

/// Workers whose thread waits for a result, and for whose. Who waits in a circle would wait for ever: all calls of the
/// circle fail, naming it. Sans-I/O; owned by the router.
class WaitingWorkers {
 public:
  WaitingWorkers(Here& here, const LocalWorkers& workers, ActorCalls& calls)
      : here_(here), workers_(workers), calls_(calls) {}

  /// nullopt: it goes on.
  void on_waits(WorkerId worker, const std::optional<Awaited>& awaited);
  void on_worker_gone(WorkerId worker) { waiting_.erase(worker); }

  /// The actor that is to answer; 0: a task's worker, or unknown.
  ActorId actor_awaited(const Awaited& awaited) const;
  void add_to(WorkerView& view) const;

 private:
  struct Waiting {
    Awaited awaited;
    Instant since;
  };

  WorkerId answerer_of(const Awaited& awaited) const;
  std::vector<WorkerId> circle_through(WorkerId worker) const;
  void break_circle(const std::vector<WorkerId>& circle);

  Here& here_;
  const LocalWorkers& workers_;
  ActorCalls& calls_;
  std::map<WorkerId, Waiting> waiting_;
};

}  // namespace paceline::actors::router
