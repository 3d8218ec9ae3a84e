#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/router/lending.h"
#include "actors/router/router_actions.h"

namespace paceline::actors::router {

inline constexpr const char* kUnsaid = " has not said how its workers are started";

/// What there is to be seen of a worker; each part of the router adds what it knows.
struct WorkerView {
  WorkerId worker;
  std::string root;
  std::string name;  ///< The actor's, or "tasks".
  ActorId actor;     ///< 0: runs tasks.
  bool ready = false;
  std::size_t calls = 0;  ///< In flight.
  int restarts = 0;       ///< Of its actor.
  // Of an actor:
  std::string actor_name{};
  std::string type{};
  std::string owner{};
  bool detached = false;
  bool constructed = false;
  std::size_t queued = 0;  ///< Calls of those in flight that wait for its process.
  int restarts_max = 0;    ///< Below 0: always.
  // Of one that runs tasks, while it is lent:
  std::optional<Lending::Lent> lent{};
  Instant lent_since{};
  // Of one whose thread waits for a result:
  std::optional<Awaited> waits{};
  Instant waits_since{};
  bool ending = false;  ///< It is being killed.
  Instant started{};
};

/// The processes of a node: its workers, on whose behalf each runs, and how those that ask for workers have them
/// started. Sans-I/O; owned by the router.
class LocalWorkers {
 public:
  struct Worker {
    std::string root;
    std::string name;  ///< For people: what it does.
    ActorId actor;     ///< 0: it runs tasks.
    Instant started{};
    Executable output{};  ///< Of it, where output goes only.
    bool ready = false;
    bool ending = false;
    bool cut_off = false;  ///< Its connection has ended, so it will: what is for its actor waits for the next one.
    bool takes_calls() const { return ready && !ending && !cut_off; }
  };

  explicit LocalWorkers(Here& here) : here_(here) {}

  /// How the workers of this owner, a peer of `from`, are started. Where output goes is for drivers to say; what
  /// workers start prints where they do.
  void on_executable(const std::string& owner, Executable executable, NodeId from);
  /// Null: neither has said.
  const Executable* executable_of(const std::string& owner, const std::string& otherwise) const;
  bool knows(const std::string& owner) const { return executables_.contains(owner); }
  /// The root of a worker of this node is that of whoever it was started for; everybody else is a root.
  std::string root_of(const std::string& owner, NodeId from) const;
  /// Roots that are connected to this node keep their workers while they are.
  void note_owner(const std::string& owner, NodeId from);
  void on_owner_gone(const std::string& owner, NodeId from);
  /// What workers print that print at this driver is to go to this node.
  void on_driver_moved(const std::string& driver, NodeId to);

  /// All of `fork` but its worker. `name`: what it does, for people.
  WorkerId start(Fork fork, ActorId actor, std::string name);
  void kill(WorkerId worker, const std::string& why = {});
  Worker* find(WorkerId worker);
  const Worker* find(WorkerId worker) const;
  std::optional<Worker> take(WorkerId worker);
  /// Its worker that is not being killed; 0: none.
  WorkerId of_actor(ActorId actor) const;
  bool takes_calls(ActorId actor) const;  ///< Its worker is there, and will be.
  /// A root that neither is connected here nor has actors here needs no workers for tasks.
  bool is_used(const std::string& root) const;
  void kill_tasks_of(const std::string& root);
  bool has_any_of(const std::string& root) const;
  /// In order of ids.
  std::vector<WorkerView> views() const;

 private:
  Here& here_;
  std::uint32_t next_ = 1;
  std::map<WorkerId, Worker> workers_;
  std::map<ActorId, WorkerId> of_actors_;
  std::set<std::string> connected_;                // Roots.
  std::map<std::string, Executable> executables_;  // By owner.
};

/// What prints at this driver prints at this node.
void move_output(Executable& executable, const std::string& driver, NodeId to);

}  // namespace paceline::actors::router
