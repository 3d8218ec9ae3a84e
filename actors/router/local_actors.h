#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/router/actor_calls.h"
#include "actors/router/loans.h"

namespace paceline::actors::router {

/// The lives of a node's actors: each begins when it has got the name that it claims, if it does; has a worker of its
/// own; is perhaps started again when that dies, and ends with its owner. Sans-I/O; owned by the router.
class LocalActors {
 public:
  struct Actor {
    CreateActor create;
    std::string root;
    NodeId origin;  ///< Whose agent its owner is connected to.
    bool constructed = false;
    bool leaving = false;  ///< Has asked for its end.
    // Of one that works for a job:
    bool outlives = false;  ///< Its owner's node was gone, at some time.
    // Of one that may be started again:
    Executable executable{};
    int restarts = 0;                  ///< So far.
    std::vector<Instant> restarted{};  ///< When, as far as the rule asks.
    int deaths_before_ready = 0;       ///< Before its constructor returned, in a row.
    Error ended{};                     ///< How its last worker did, as a call that it had hears it.
    bool restartable() const { return create.rule.restarts != 0; }
    /// "actor 'counter'"
    std::string described() const;
  };

  LocalActors(Here& here, LocalWorkers& workers, ActorCalls& calls, Loans& loans)
      : here_(here), workers_(workers), calls_(calls), loans_(loans) {}

  /// Why there cannot be one of this id.
  std::optional<Error> why_not(ActorId id) const;
  /// With the executable of its worker.
  void on_create(CreateActor create, NodeId from);
  /// Its owner hears it, and who has called it before.
  void refuse(const CreateActor& create, NodeId from, const Error& error);
  void on_claimed(ActorId id, const std::string& name, ActorId holder);
  void on_claim_refused(ActorId id, const Error& error);
  void on_call(Call call, NodeId from);
  void on_worker_ready(ActorId id);
  void on_actor_ready(ActorReady ready);
  void on_leaving(ActorId id);
  /// With its worker, of whose end is heard `why`. `tell`: its owner does not know.
  void end_actor(ActorId id, ErrorKind kind, const std::string& because, bool tell, const std::string& why);
  /// Its worker is.
  void on_worker_gone(ActorId id, WorkerId worker, const std::string& how, const std::string& log);
  /// It ends, if it is this owner's, with its last handle or with its owner.
  void release(ActorId id, const std::string& owner, NodeId from, bool owner_died);
  void on_owner_gone(const std::string& owner);  ///< Of this node.
  /// What its peers owned here ends, but for what works for one of these jobs, which waits for its owner.
  void on_node_lost(NodeId node, const std::set<JobId>& jobs);
  /// Call::again: the owner's agent is gone, and it has another one: what it is told of its actor goes there.
  Result<void> on_call_again(Call call, NodeId from, const std::set<JobId>& jobs);
  void on_driver_moved(const std::string& driver, NodeId to);
  void on_job_closed(JobId job);
  /// Ends those whose owners have been waited for long enough.
  void tick();
  std::optional<Instant> next_deadline() const;

  /// Null: it is not there.
  const Actor* find(ActorId id) const;
  bool has_name(ActorId id) const;
  std::vector<NameClaim> names() const;
  void add_to(WorkerView& view) const;
  /// If its worker died now it would have another one.
  bool will_restart(ActorId id) const;

 private:
  struct Claiming {
    CreateActor create;
    NodeId origin;
  };

  bool is_in_use(ActorId id) const;
  void begin(CreateActor create, NodeId from);
  void take_early(ActorId id);
  void start_worker(const Actor& actor, Executable executable);
  void tell_owner(const Actor& actor, ActorReady ready) const;
  void forget(ActorId id, const Error& reason, bool tell);
  bool may_restart(const Actor& actor) const;
  bool restart(Actor& actor, WorkerId worker, const std::string& how, const std::string& log);

  Here& here_;
  LocalWorkers& workers_;
  ActorCalls& calls_;
  Loans& loans_;
  std::map<ActorId, Actor> actors_;
  std::map<ActorId, Claiming> claiming_;  // Whose names are not decided.
  std::map<ActorId, Instant> orphans_;    // Those whose owners are waited for, until then.
};

}  // namespace paceline::actors::router
