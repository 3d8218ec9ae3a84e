#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/router/local_actors.h"
#include "actors/router/remote_actors.h"
#include "actors/router/router_actions.h"
#include "actors/router/waiting_workers.h"

namespace paceline::actors {

/// The agent's side of actors and tasks: decides which worker processes to start and end, where each call goes, and who
/// hears what when something dies. Sans-I/O: the agent's shell steps it and carries out the actions, in order. Owned by
/// the control loop.
///
/// An actor has a worker of its own (local_actors.h); workers for tasks are lent to who has tasks (loans.h). Everything
/// belongs to a *root*, the driver at the beginning of the chain of creations: when it goes, its workers on this node
/// end (local_workers.h). A call to an actor of another node goes to that node's agent, and the answer comes back the
/// same way (actor_calls.h, remote_actors.h). A detached actor is a root itself.
class ActorRouter {
 public:
  using Options = router::Options;
  using Fork = router::Fork;
  using Kill = router::Kill;
  using Send = router::Send;
  using Forward = router::Forward;
  using Claim = router::Claim;
  using Unclaim = router::Unclaim;
  using Warn = router::Warn;
  using Forget = router::Forget;
  using Actions = router::Actions;
  using WorkerView = router::WorkerView;

  explicit ActorRouter(Options options) : here_{std::move(options)} {}
  ActorRouter(const ActorRouter&) = delete;  // Its parts know each other.
  ActorRouter& operator=(const ActorRouter&) = delete;

  /// What follows happens now: for what is seen of how long something lasts.
  void at(Instant now) {
    here_.now = now;
    loans_.at(now);
  }
  /// Sends more of what has waited for an actor's worker; tells who has waited for a worker for long, and who has
  /// called an actor that there is not.
  Actions tick(Instant now);
  std::optional<Instant> next_deadline() const;

  // `from`: this node if the message came from a peer of its own, else the node whose agent sent it.
  /// How the workers of a peer of this node are started, of those that it asks for from here on. Where output goes is
  /// for drivers to say; what workers start prints where they do.
  void on_executable(const std::string& owner, Executable executable) {
    workers_.on_executable(owner, std::move(executable), here_.options.node);
  }
  Actions on_create(CreateActor create, NodeId from);
  Actions on_call(Call call, NodeId from) {
    actors_.on_call(std::move(call), from);
    return take_actions();
  }
  Actions on_wants(const Wants& wants, NodeId from) {
    loans_.on_wants(wants, from);
    return take_actions();
  }
  Actions on_push(PushTask push, NodeId from) {
    loans_.on_push(std::move(push), from);
    return take_actions();
  }
  /// To the worker that has it; a call that waits for its actor here, and is cancelled, ends here.
  Actions on_signal(Signal signal, NodeId from);
  /// Of another node, to an owner here.
  Actions on_loan(Loan loan) {
    loans_.on_loan(std::move(loan));
    return take_actions();
  }
  Actions on_release(const std::string& owner, const Release& release, NodeId from);
  /// A peer that may own things (driver, worker) is disconnected.
  Actions on_owner_gone(const std::string& owner) {
    lose_owner(owner);
    return take_actions();
  }

  Actions on_worker_ready(WorkerId worker);  ///< Its hello came.
  /// From a worker, or from another node. `dead`, of a worker: its actor has asked for its end.
  Actions on_actor_ready(ActorReady ready);
  /// This worker's actor has asked for its end, and its destructor runs: however that goes, it is the end.
  void on_leaving(WorkerId worker);
  /// `from`: a worker's peer name, or another node's agent. Counts from whoever was asked only, but for the result of a
  /// call that came past this agent, which it only passes on.
  Actions on_result(CallResult result, const std::string& from);
  /// A worker's thread waits for a result, or goes on (nullopt). A task that waits gives its
  /// cpus back meanwhile. Who waits in a circle would wait for ever: all calls of the circle fail, naming it.
  Actions on_waits(WorkerId worker, std::optional<Awaited> awaited);
  /// `how`: "killed by SIGSEGV ..., last lines: ...". Also: could not be forked. `log`: if something stands in it.
  Actions on_worker_gone(WorkerId worker, const std::string& how, const std::string& log = {});
  /// Somebody else than its owner wants its end, an actor's for good: who is told hears `why`, too.
  Actions end_worker(WorkerId worker, const std::string& why);
  /// If this worker ended now, by itself or from outside, its actor would have another one.
  bool will_restart(WorkerId worker) const;
  /// It is ended, and its actor has another one.
  Actions replace_worker(WorkerId worker, const std::string& why);
  /// Another node, which has so much, can be asked for workers.
  Actions on_node(NodeId node, const Capacity& has);
  /// What its peers owned here ends, but for what works for one of these jobs: that owner may come back through another
  /// agent (Call::again).
  Actions on_node_gone(NodeId node, const std::string& how, const std::set<JobId>& jobs = {});
  /// Call::again: from its owner, which has another agent, for an actor that works for one of these jobs.
  Actions on_call_again(Call call, NodeId from, const std::set<JobId>& jobs);
  /// What its workers, and theirs, print from here on is to go to this node.
  void on_driver_moved(const std::string& driver, NodeId to) {
    workers_.on_driver_moved(driver, to);
    actors_.on_driver_moved(driver, to);
  }
  /// What worked for it and has outlived its owner's node ends.
  Actions on_job_closed(JobId job) {
    actors_.on_job_closed(job);
    return take_actions();
  }

  // Names of actors of this node
  /// The head's word of a claim: `holder` has the name, the actor itself or another one.
  Actions on_claimed(ActorId actor, const std::string& name, ActorId holder) {
    actors_.on_claimed(actor, name, holder);
    return take_actions();
  }
  Actions on_claim_refused(ActorId actor, const Error& error) {
    actors_.on_claim_refused(actor, error);
    return take_actions();
  }
  /// While this node was away from the head, another actor got its name.
  Actions on_name_lost(ActorId actor);
  /// Those that actors of this node have, for a head that does not know them.
  std::vector<NameClaim> names() const { return actors_.names(); }
  bool has_name(ActorId actor) const { return actors_.has_name(actor); }

  // For people
  /// In order of ids.
  std::vector<WorkerView> workers() const;
  std::vector<Lending::WantView> wants() const { return loans_.lending().wants(); }
  std::vector<Lending::HoldView> holds() const { return loans_.lending().holds(); }
  /// Below 0 where more are used than there are, by tasks that have waited and go on.
  Capacity free() const { return loans_.lending().free(); }
  /// What a worker is lent for; null: it is not.
  const Lending::Lent* lent(WorkerId worker) const { return loans_.lending().lent(worker); }
  /// "worker 3 on node 0 (actor 'counter') ...", to whoever sees what this worker prints.
  Warn warning_about(WorkerId worker, const std::string& what) const;
  /// The actor that is to answer; 0: a task's worker, or unknown.
  ActorId actor_awaited(const Awaited& awaited) const { return waiting_.actor_awaited(awaited); }
  /// "actor 'counter'", "a task".
  std::string describe_awaited(const Awaited& awaited) const;
  /// The path of what an owner runs; empty: unknown.
  std::string program_of(const std::string& owner, const std::string& root) const;
  /// The worker of an actor of this node; 0 if there is none.
  WorkerId worker_of(ActorId actor) const { return workers_.of_actor(actor); }
  /// The actor whose process this worker is, if it may be started again; else 0.
  ActorId restartable_of(WorkerId worker) const;
  struct LineTo {
    WorkerId worker;  ///< That calls to the actor may go to past this agent; 0: they have to come here.
    RestartRule rule{};
    int restarts = 0;  ///< So far,
    Error ended{};     ///< and how the process before the last one ended.
  };
  /// Or why there is none.
  Result<LineTo> line_to(ActorId actor) const;
  /// Actors of other nodes that peers of this one own, and workers that they have lent: how many, and whether any is
  /// on `node`.
  std::size_t actors_elsewhere() const {
    return remote_.size() + loans_.lending().elsewhere() + calls_.called().size();
  }
  bool owns_actors_on(NodeId node) const;

 private:
  Actions take_actions() { return std::exchange(here_.actions, {}); }
  void hear_of_remote(ActorReady ready);
  void lose_owner(const std::string& owner);

  router::Here here_;
  router::LocalWorkers workers_{here_};
  router::ActorCalls calls_{here_, workers_};
  router::Loans loans_{here_, workers_};
  router::LocalActors actors_{here_, workers_, calls_, loans_};
  router::RemoteActors remote_{here_};
  router::WaitingWorkers waiting_{here_, workers_, calls_};
};

}  // namespace paceline::actors
