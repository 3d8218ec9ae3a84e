#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "runtime/base/ids.h"
#include "runtime/base/instant.h"
#include "runtime/store/shared_object.h"
#include "scheduler/contents.h"

namespace paceline::cluster {

/// A worker's whole state at an update, in the format of its own program.
struct Replica {
  std::shared_ptr<store::SharedObject> object;
  std::int64_t update = 0;
  std::uint64_t size = 0;
  scheduler::Contents contents{};  ///< Of the model in it.
};

/// Who gets whose state, on one node: everybody starts from rank 0's, and whoever missed averagings goes on from the
/// state of a worker that is further: at the end of the job only of one that has come to it, since an older state would
/// be of no use. Where nobody can be asked any more (who is further is gone or frozen), the furthest of those that ask
/// goes on with its own, and the others take that. Sans I/O, owned by the job.
///
///   a worker asks -> Capture from the local worker that is furthest, or AskNode where none is far enough
///                 -> the captured state -> Give to local workers, Send to the nodes that asked
///                 -> (SendNone of all other nodes, and nobody here) GoOn
///
/// Who comes in the place of a worker that has left gets none before it is admitted. Where models agree it needs
/// exactly the state after the version that it is admitted after: a donor is asked before it comes to that. Where it
/// cannot be had any more the worker is to be admitted anew.
class ReplicaExchange {
 public:
  struct Give {
    Rank rank;
    Replica replica;
  };
  struct Send {
    NodeId node;
    Rank from;
    Replica replica;
  };
  /// What a worker that asks can go on from.
  struct Need {
    std::int64_t least = 0;  ///< A state of this update, or of a later one;
    bool exact = false;      ///< of this one.
    bool operator==(const Need&) const = default;
  };
  /// Ask this local worker for its state, when it has come to this update.
  struct Capture {
    Rank donor;
    std::int64_t from = -1;
  };
  struct AskNode {
    NodeId node;
    Rank rank;
    Need need;
  };
  /// A local worker that is not gone.
  struct Donor {
    Rank rank{-1};
    std::int64_t step = 0;
    bool frozen = false;  ///< It cannot be asked now.
  };
  using Donors = std::vector<Donor>;
  struct None {
    Donor furthest{};    ///< Of those that ask there themselves; rank -1: none does.
    bool holds = false;  ///< Somebody there has a model, and cannot give it now.
  };
  /// To a node that asked: nobody here can give.
  struct SendNone {
    NodeId node;
    None none;
  };
  /// What this local worker was admitted to begin with cannot be had.
  struct Readmit {
    Rank rank;
  };
  /// This local worker comes back to a job in which nobody has a model any more.
  struct Lost {
    Rank rank;
  };
  /// This local worker's own state is the newest that can be had.
  struct GoOn {
    Rank rank;
  };
  using Action = std::variant<Give, Send, Capture, AskNode, SendNone, GoOn, Readmit, Lost>;
  using Actions = std::vector<Action>;

  /// Asked again, and somebody else where there is one, after this long;
  static constexpr Duration kPatience = std::chrono::seconds(1);
  /// where there was nobody to ask, after this.
  static constexpr Duration kLook = std::chrono::milliseconds(20);

  /// `node_of`: of each rank.
  ReplicaExchange(NodeId self, const std::vector<NodeId>& node_of);

  /// `from`: the node of the worker that asks.
  Actions on_wanted(Rank rank, NodeId from, Need need, const Donors& donors, Instant now);
  /// Another process comes in the place of a local worker: what it asks for waits until it is admitted.
  void on_return(Rank rank);
  Actions on_admitted(Rank rank, Need need, const Donors& donors, Instant now);
  /// Where the donor is now that it can see what it is asked for.
  Actions on_asked(const Donor& donor);
  /// A local worker has left: what it was asked for does not come.
  Actions on_left(Rank rank, const Donors& donors, Instant now);
  /// The job has ended with this update: everybody needs a state of it.
  Actions on_end(std::int64_t update, const Donors& donors, Instant now);
  /// Another node has nobody to give.
  Actions on_none(NodeId from, const None& none, const Donors& donors, Instant now);
  /// It neither asks nor gives any more.
  Actions on_node_gone(NodeId node, const Donors& donors, Instant now);
  /// A state that a local worker gave or that another node sent.
  Actions on_captured(Rank from, const Replica& replica);
  /// When to ask_again(), if nothing comes before.
  std::optional<Instant> due() const { return waiters_.empty() ? std::nullopt : due_; }
  bool is_due(Instant now) const { return due() && now >= *due(); }
  Actions ask_again(const Donors& donors, Instant now) { return ask(donors, now); }
  /// All who are there have begun before: nobody needs rank 0's state.
  void begin_without_start() { needs_start_ = false; }
  /// Rank 0's state at the start is here, or is not needed.
  bool has_start() const { return start_.has_value() || !needs_start_; }
  /// This local worker has begun with it.
  bool has_started(Rank rank) const { return started_.contains(rank) || !needs_start_; }

 private:
  struct Waiter {
    Rank rank;
    NodeId node;
    Need need;
    Rank asked{-1};  ///< exact: who was asked for it.
  };
  Actions ask(const Donors& donors, Instant now);
  void ask_ahead(const Donors& donors, Actions& actions);
  void miss(Waiter& waiter, Actions& actions);
  void forget_refused();
  bool waits(Rank rank) const;
  /// It has a model, and does not ask for another.
  bool may_give(Rank rank) const { return !waits(rank) && !returning_.contains(rank); }
  void ask_next_node(Actions& actions, Instant now);
  void refuse_others(Actions& actions, const None& none);
  Donor furthest_waiting(const Donors& donors) const;
  bool is_furthest(const Donor& own) const;
  bool nobody_has_a_model(const Donors& donors) const;

  NodeId self_;
  NodeId first_;  ///< Where rank 0 is.
  std::size_t workers_;
  std::set<NodeId> others_;      ///< The job's other nodes.
  std::map<NodeId, None> none_;  ///< Those of them that have nobody to give.
  std::optional<Replica> start_;
  bool needs_start_ = true;
  std::set<Rank> started_;          ///< Local workers that have had a state.
  std::map<Rank, Need> returning_;  ///< Local ones that come back, and have not had one since.
  std::vector<Waiter> waiters_;
  std::optional<Instant> due_;
  Rank last_donor_{-1};
};

}  // namespace paceline::cluster
