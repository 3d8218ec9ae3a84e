#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/router/early_calls.h"
#include "actors/router/local_workers.h"

namespace paceline::actors::router {

/// Calls to actors that go through this node. Those to its own wait here until the actor's worker takes them, or fail
/// with what the actor has ended of; those to other nodes' have their owner kept. Sans-I/O; owned by the router.
class ActorCalls {
 public:
  struct InFlight {
    std::string owner;
    NodeId origin;  ///< Whose agent the owner is connected to.
    ActorId actor;
  };

  ActorCalls(Here& here, const LocalWorkers& workers) : here_(here), workers_(workers) {}

  /// An actor of this node is there, and ends. Its results are kept where it may be asked for them again.
  void begin(ActorId actor, const RestartRule& rule, bool keeps_results);
  void end(ActorId actor, const Error& reason);
  /// Its process has died, of `ended`, and the next one is started: what the dead one had taken fails or is sent again,
  /// before what waits.
  void on_death(ActorId actor, const Error& ended);
  /// Those that came before the actor; they are to be made anew now that it is there, or has ended.
  std::vector<EarlyCalls::Early> take_early(ActorId actor) { return early_.take(actor); }

  /// True: it asks for the end of an actor of this node, and is answered.
  [[nodiscard]] bool on_call(Call call, NodeId from);
  /// Call::again: from here on its owner hears of it at `from`. False: it is not known, or somebody else's.
  [[nodiscard]] bool on_call_again(Call call, NodeId from);
  void on_signal(Signal signal, NodeId from);
  /// `from`: a worker's peer name, or another node's agent. False: it is of no call to an actor.
  [[nodiscard]] bool on_result(CallResult& result, const std::string& from);
  /// Some of what has waited for the actor's worker; the rest at the next tick(), since others want something of this
  /// thread, too.
  void send_queue(ActorId actor);
  /// It has its answer: nothing knows it any more. Nothing: nobody did.
  std::optional<InFlight> end_call(TaskId task);
  void on_actor_lost(ActorId actor, const Error& reason);  ///< Of another node.
  void on_node_lost(NodeId node, const Error& reason);
  void on_owner_gone(const std::string& owner);
  /// Sends more of what has waited for an actor's worker; tells who has called an actor that there is not.
  void tick();
  std::optional<Instant> next_deadline() const;

  bool has_ended(ActorId actor) const { return dead_.contains(actor); }
  /// How an actor that is not there has ended, if it was.
  Error why_none(ActorId actor) const;
  /// The actor that a call is to; 0: unknown.
  ActorId callee_of(TaskId task) const;
  /// Other nodes whose actors have been called from here.
  const std::set<NodeId>& called() const { return called_; }
  void add_to(WorkerView& view) const;

 private:
  /// What an actor of this node has been sent, and what it is to be sent.
  struct Inbox {
    RestartRule rule;
    bool keeps_results = false;
    std::deque<Call> queue{};  ///< Until the worker is there, and has been sent what came before.
    std::set<TaskId> calls{};  ///< In flight.
    SentCalls<Call> sent{};  ///< To its worker, if it may be started again; without contents where none is sent again.
    std::map<TaskId, CallResult> results{};
  };

  void refuse(const Call& call, NodeId from, Error error) const;
  void send(Inbox& inbox, Call call);
  template <class Over>
  void fail_elsewhere(const Error& reason, Over over);

  Here& here_;
  const LocalWorkers& workers_;
  std::map<TaskId, InFlight> in_flight_;
  std::map<ActorId, Inbox> inboxes_;
  std::set<ActorId> unsent_;  // Whose workers are there, and whose queues are not empty yet.
  std::set<NodeId> called_;
  EarlyCalls early_;
  std::map<ActorId, Error> dead_;
  std::deque<ActorId> dead_order_;
};

}  // namespace paceline::actors::router
