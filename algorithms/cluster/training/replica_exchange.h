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

namespace paceline::cluster {

/// A worker's whole state at an update, in the format of its own program.
struct Replica {
  std::shared_ptr<store::SharedObject> object;
  std::int64_t update = 0;
  std::uint64_t size = 0;
};

/// Who gets whose state, on one node: everybody starts from rank 0's, and whoever missed averagings goes on from the
/// state of a worker that is further: at the end of the job only of one that has come to it, since an older state would
/// be of no use. Where nobody can be asked any more (who is further is gone or frozen), the furthest of those that ask
/// goes on with its own, and the others take that. Sans I/O, owned by the job.
///
///   a worker asks -> Capture from the local worker that is furthest, or AskNode where none is far enough
///                 -> the captured state -> Give to local workers, Send to the nodes that asked
///                 -> (SendNone of all other nodes, and nobody here) GoOn
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
  /// Ask this local worker for its state.
  struct Capture {
    Rank donor;
  };
  struct AskNode {
    NodeId node;
    Rank rank;
    std::int64_t least = 0;
  };
  /// A local worker that could be asked now: it is neither gone nor frozen.
  struct Donor {
    Rank rank{-1};
    std::int64_t step = 0;
  };
  using Donors = std::vector<Donor>;
  /// To a node that asked: nobody here can give. The furthest of those that ask here themselves; rank -1: none does.
  struct SendNone {
    NodeId node;
    Donor furthest;
  };
  /// This local worker's own state is the newest that can be had.
  struct GoOn {
    Rank rank;
  };
  using Action = std::variant<Give, Send, Capture, AskNode, SendNone, GoOn>;
  using Actions = std::vector<Action>;

  /// Asked again, and somebody else where there is one, after this long;
  static constexpr Duration kPatience = std::chrono::seconds(1);
  /// where there was nobody to ask, after this.
  static constexpr Duration kLook = std::chrono::milliseconds(20);

  /// `node_of`: of each rank.
  ReplicaExchange(NodeId self, const std::vector<NodeId>& node_of);

  /// `from`: the node of the worker that asks; `least`: a state of an earlier update does not serve it.
  Actions on_wanted(Rank rank, NodeId from, std::int64_t least, const Donors& donors, Instant now);
  /// Another node has nobody to give.
  Actions on_none(NodeId from, const Donor& furthest, const Donors& donors, Instant now);
  /// It neither asks nor gives any more.
  Actions on_node_gone(NodeId node, const Donors& donors, Instant now);
  /// A state that a local worker gave or that another node sent.
  Actions on_captured(Rank from, const Replica& replica);
  /// When to ask_again(), if nothing comes before.
  std::optional<Instant> due() const { return waiters_.empty() ? std::nullopt : due_; }
  bool is_due(Instant now) const { return due() && now >= *due(); }
  Actions ask_again(const Donors& donors, Instant now) { return ask(donors, now); }
  /// Rank 0's state at the start is here.
  bool has_start() const { return start_.has_value(); }

 private:
  struct Waiter {
    Rank rank;
    NodeId node;
    std::int64_t least = 0;
  };
  Actions ask(const Donors& donors, Instant now);
  bool waits(Rank rank) const;
  Actions ask_next_node(Instant now);
  void refuse_others(Actions& actions, const Donor& furthest);
  Donor furthest_waiting(const Donors& donors) const;
  bool is_furthest(const Donor& own) const;

  NodeId self_;
  NodeId first_;  ///< Where rank 0 is.
  std::size_t workers_;
  std::set<NodeId> others_;       ///< The job's other nodes.
  std::map<NodeId, Donor> none_;  ///< Those of them that have nobody to give, and who asks there.
  std::optional<Replica> start_;
  std::set<Rank> started_;  ///< Local workers that have had a state.
  std::vector<Waiter> waiters_;
  std::optional<Instant> due_;
  Rank last_donor_{-1};
};

}  // namespace paceline::cluster
