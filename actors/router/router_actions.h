#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "actors/protocol.h"

namespace paceline::actors {

inline constexpr const char* kDetached =
    "detached/";  ///< And its id: what a detached actor's owner, and root, is called.

/// What the router of a node, whose face is actors/router/actor_router.h, is made of.
namespace router {

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
/// To a peer of this node: a worker or an owner.
struct Send {
  std::string peer;
  std::variant<CreateActor, ActorReady, Call, CallResult, PushTask, Loan, Signal> message;
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

/// What all parts of a router share: which node this is, its bounds, what time it is, and what is to be done.
struct Here {
  Options options;
  Instant now{};
  Actions actions{};

  bool is(NodeId node) const { return node == options.node; }
  void act(Action action) { actions.push_back(std::move(action)); }
  /// An answer, to its owner, whose agent is that of `origin`.
  template <class Answer>
  void tell(const std::string& owner, NodeId origin, Answer answer) {
    answer.owner = owner;
    if (is(origin)) {
      act(Send{owner, std::move(answer)});
    } else {
      act(Forward{origin, std::move(answer), owner});
    }
  }
};

}  // namespace router
}  // namespace paceline::actors
