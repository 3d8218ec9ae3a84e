#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "actors/protocol.h"
#include "actors/router/early_calls.h"
#include "actors/router/lending.h"

namespace paceline::actors {

inline constexpr const char* kDetached =
    "detached/";  ///< And its id: what a detached actor's owner, and root, is called.

/// The agent's side of actors and tasks: decides which worker processes to start and end, where each call goes, and who
/// hears what when something dies. Sans-I/O: the agent's shell steps it and carries out the actions, in order. Owned by
/// the control loop.
///
/// An actor has a worker of its own; workers for tasks are lent to who has tasks (actors/router/lending.h). Everything
/// belongs to a *root*, the driver at the beginning of the chain of creations: when it goes, its workers on this node
/// end. A call to an actor of another node goes to that node's agent, and the answer comes back the same way. A
/// detached actor is a root itself.
class ActorRouter {
 public:
  struct Options {
    NodeId node;
    Capacity has = {1, 0x1p60};                        ///< That tasks may use at one time.
    std::size_t actors_max = 4096;                     ///< Alive on this node.
    std::string mend = "end some first";               ///< What to do at that bound.
    std::size_t calls_max = std::size_t{1} << 20;      ///< In flight through this node.
    std::size_t dead_max = 4096;                       ///< Dead actors whose end is remembered.
    Duration creation_max = std::chrono::seconds(10);  ///< A call may come so long before its actor's creation.
    /// What works for a job waits so long for its owner, whose node is gone, to come back through another agent.
    Duration owner_patience = std::chrono::seconds(10);
    std::size_t calls_a_turn = 128;  ///< That have waited for one actor, to its worker: some microseconds each.
  };

  /// Start a worker: fork server of `executable` (start it if need be), peer name worker_peer(worker). `name` is for
  /// people.
  struct Fork {
    WorkerId worker;
    Executable executable;
    std::string root;
    std::string name;    ///< The actor's own, "tasks" for a worker of tasks; may be empty, may hold anything.
    std::string type{};  ///< The actor's class; empty: it is no actor's.
  };
  /// End a worker (SIGKILL); on_worker_gone follows as usual, with `why` as how if it is there.
  struct Kill {
    WorkerId worker;
    std::string why{};
  };
  using Message = std::variant<CreateActor, ActorReady, Call, CallResult, PushTask, Loan, Signal>;
  /// To a peer of this node: a worker or an owner.
  struct Send {
    std::string peer;
    Message message;
  };
  /// To the agent of another node. A Release travels as the request "release" from `owner`.
  struct Forward {
    NodeId node;
    std::variant<CreateActor, ActorReady, Call, CallResult, Release, PushTask, Wants, Loan, Signal> message;
    std::string owner;
  };
  /// Ask the head for the actor's name; on_claimed() or on_claim_refused() follows.
  struct Claim {
    NameClaim claim;
  };
  /// Tell the head that the actor does not have this name any more; not answered.
  struct Unclaim {
    ActorId actor;
    std::string name;
  };
  /// A line for whoever sees what a driver's workers print.
  struct Warn {
    std::string driver{};  ///< Empty: nobody.
    NodeId node{};         ///< Its.
    std::string text{};
  };
  /// The actor has ended, and is not started again: nothing has to be kept of it any longer.
  struct Forget {
    ActorId actor;
  };
  using Action = std::variant<Fork, Kill, Send, Forward, Claim, Unclaim, Warn, Forget>;
  using Actions = std::vector<Action>;

  explicit ActorRouter(Options options) : options_(options), lending_({.node = options.node, .has = options.has}) {}

  /// What follows happens now: for what is seen of how long something lasts.
  void at(Instant now) {
    now_ = now;
    lending_.at(now);
  }
  /// Sends more of what has waited for an actor's worker; tells who has waited for a worker for long, and who has
  /// called an actor that there is not.
  Actions tick(Instant now);
  std::optional<Instant> next_deadline() const;

  // `from`: this node if the message came from a peer of its own, else the node whose agent sent it.
  /// How the workers of a peer of this node are started, of those that it asks for from here on. Where output goes is
  /// for drivers to say; what workers start prints where they do.
  void on_executable(const std::string& owner, Executable executable);
  Actions on_create(CreateActor create, NodeId from);
  Actions on_call(Call call, NodeId from);
  Actions on_wants(const Wants& wants, NodeId from);
  Actions on_push(PushTask push, NodeId from);
  /// To the worker that has it; a call that waits for its actor here, and is cancelled, ends here.
  Actions on_signal(Signal signal, NodeId from);
  Actions on_loan(Loan loan);  ///< Of another node, to an owner here.
  Actions on_release(const std::string& owner, const Release& release, NodeId from);
  /// A peer that may own things (driver, worker) is disconnected.
  Actions on_owner_gone(const std::string& owner);

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
  /// Another node, which has so much, can be asked for workers.
  Actions on_node(NodeId node, const Capacity& has);
  /// What its peers owned here ends, but for what works for one of these jobs: that owner may come back through another
  /// agent (Call::again).
  Actions on_node_gone(NodeId node, const std::string& how, const std::set<JobId>& jobs = {});
  /// Call::again: from its owner, which has another agent, for an actor that works for one of these jobs.
  Actions on_call_again(Call call, NodeId from, const std::set<JobId>& jobs);
  /// What its workers, and theirs, print from here on is to go to this node.
  void on_driver_moved(const std::string& driver, NodeId to);
  /// What worked for it and has outlived its owner's node ends.
  Actions on_job_closed(JobId job);

  // Names of actors of this node (actor_names.cc)
  /// The head's word of a claim: `holder` has the name, the actor itself or another one.
  Actions on_claimed(ActorId actor, const std::string& name, ActorId holder);
  Actions on_claim_refused(ActorId actor, const Error& error);
  /// While this node was away from the head, another actor got its name.
  Actions on_name_lost(ActorId actor);
  /// Those that actors of this node have, for a head that does not know them.
  std::vector<NameClaim> names() const;
  bool has_name(ActorId actor) const;

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
  // For people (router_views.cc)
  /// In order of ids.
  std::vector<WorkerView> workers() const;
  std::vector<Lending::WantView> wants() const { return lending_.wants(); }
  std::vector<Lending::HoldView> holds() const { return lending_.holds(); }
  /// Below 0 where more are used than there are, by tasks that have waited and go on.
  Capacity free() const { return lending_.free(); }
  /// What a worker is lent for; null: it is not.
  const Lending::Lent* lent(WorkerId worker) const { return lending_.lent(worker); }
  /// "worker 3 on node 0 (actor 'counter') ...", to whoever sees what this worker prints.
  Warn warning_about(WorkerId worker, const std::string& what) const;
  /// The actor that is to answer; 0: a task's worker, or unknown.
  ActorId actor_awaited(const Awaited& awaited) const;
  /// "actor 'counter'", "a task".
  std::string describe_awaited(const Awaited& awaited) const;
  /// The path of what an owner runs; empty: unknown.
  std::string program_of(const std::string& owner, const std::string& root) const;
  /// The worker of an actor of this node; 0 if there is none.
  WorkerId worker_of(ActorId actor) const;
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
  std::size_t actors_elsewhere() const { return remote_.size() + lending_.elsewhere() + called_.size(); }
  bool owns_actors_on(NodeId node) const;

 private:
  struct InFlight {
    std::string owner;
    NodeId origin;
    NodeId target;  ///< Where the actor lives.
    ActorId actor;
  };
  struct Remote {
    std::string owner;
    std::string root;
    std::string name{};  ///< That it claims.
    bool detached = false;
  };
  struct Claiming {
    CreateActor create;
    NodeId origin;
  };
  struct Actor {
    CreateActor create;
    std::string root;
    NodeId origin;
    WorkerId worker;
    std::deque<Call> queue;  ///< Until the worker is there, and has been sent what came before.
    std::set<TaskId> calls;  ///< In flight.
    bool constructed = false;
    bool leaving = false;  ///< Has asked for its end.
    // Of one that works for a job:
    bool outlives = false;  ///< Its owner's node was gone, at some time.
    std::map<TaskId, CallResult> answered{};
    // Of one that may be started again:
    Executable executable{};
    SentCalls<Call> sent{};       ///< To its worker; without their contents where none is sent again.
    int restarts = 0;             ///< So far.
    int deaths_before_ready = 0;  ///< Before its constructor returned, in a row.
    Error ended{};                ///< How its last worker did, as a call that it had hears it.
    bool restartable() const { return create.rule.restarts != 0; }
  };
  struct Worker {
    std::string root;
    std::string name;
    ActorId actor;  ///< 0: it runs tasks.
    bool ready = false;
    bool ending = false;
    std::optional<Awaited> waits{};
    Instant waits_since{};
    bool cut_off = false;  ///< Its connection has ended, so it will: what is for its actor waits for the next one.
    Executable output{};   ///< Of it, where output goes only.
    Instant started{};
  };

  bool is_here(NodeId node) const { return node == options_.node; }
  std::string root_of(const std::string& owner, NodeId from) const;
  void note_owner(const std::string& owner, NodeId from);
  const Executable* executable_of(const std::string& peer, const std::string& otherwise) const;
  WorkerId start_worker(Actions& actions, Executable executable, const std::string& root, ActorId actor,
                        std::string name, std::string description, std::string type = {});
  void kill(Actions& actions, WorkerId worker, const std::string& why = {});
  void answer(Actions& actions, const std::string& owner, NodeId origin, CallResult result) const;
  void tell_owner(Actions& actions, const Actor& actor, ActorReady ready) const;
  void end_actor(Actions& actions, ActorId actor, const Error& reason, bool tell);
  void end_living(Actions& actions, const Actor& actor, const Error& reason, bool tell, const std::string& why = {});
  void begin(Actions& actions, CreateActor create, NodeId from);
  void never_begins(Actions& actions, ActorId actor, const Error& reason);
  void take_early(Actions& actions, ActorId actor);
  Error unknown(ActorId actor) const;
  void claim(Actions& actions, CreateActor create, NodeId from);
  void tell_claimer(Actions& actions, const std::string& owner, NodeId origin, ActorReady ready) const;
  void note_hindrance(CreateActor& create);
  void note_ending(const Remote& remote, ActorId actor);
  void kill_actor(Actions& actions, const Actor& actor, const Call& call, NodeId from);
  void remember_dead(ActorId actor, Error reason);
  bool takes_calls(const Actor& actor) const;  ///< Its worker is there, and will be.
  void send_to_worker(Actions& actions, Actor& actor, Call call);
  /// Some of what has waited; the rest at the next tick(), since others want something of this thread, too.
  void send_queue(Actions& actions, ActorId id, Actor& actor);
  std::optional<InFlight> end_call(TaskId task);
  bool restart(Actions& actions, Actor& actor, WorkerId worker, const std::string& how, const std::string& log);
  bool was_asked(const InFlight& call, const std::string& peer) const;
  void tell_borrower(Actions& actions, const Lending::Owner& owner, Loan loan) const;
  void refuse_loan(Actions& actions, const Lending::Lent& wanted, const Error& error) const;
  void tell_gone(Actions& actions, const Lending::Lent& lent, WorkerId worker, Error reason) const;
  void on_borrower_gone(Actions& actions, const Lending::Owner& owner, const std::string& root);
  WorkerId answerer_of(const Awaited& awaited) const;
  std::vector<WorkerId> circle_through(WorkerId worker) const;
  void break_circle(Actions& actions, const std::vector<WorkerId>& circle);
  void dispatch(Actions& actions);
  void end_root_if_unused(Actions& actions, const std::string& root);
  std::string describe(const Actor& actor) const;

  Options options_;
  Instant now_{};
  Lending lending_;
  std::uint32_t next_worker_ = 1;
  std::map<ActorId, Actor> actors_;
  std::map<ActorId, Instant> orphans_;  // Actors whose owners are waited for, until then.
  std::map<WorkerId, Worker> workers_;
  std::map<std::string, std::set<NodeId>> asked_;  // By root: nodes that owners of it have asked for workers.
  std::map<TaskId, InFlight> in_flight_;           // Method calls.
  std::map<ActorId, Remote> remote_;               // Actors of other nodes that peers of this one own.
  std::map<ActorId, Claiming> claiming_;           // Of this node, whose names are not decided.
  std::map<std::string, ActorId> ending_;          // Names of actors of other nodes that those have been told to end.
  std::set<NodeId> called_;                        // Other nodes whose actors have been called from here.
  EarlyCalls early_;
  std::set<ActorId> unsent_;  ///< Whose workers are there, and whose queues are not empty yet.
  std::map<ActorId, Error> dead_;
  std::deque<ActorId> dead_order_;
  std::set<std::string> owners_here_;
  std::map<std::string, Executable> executables_;  // By owner.
};

}  // namespace paceline::actors
