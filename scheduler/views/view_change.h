#pragma once

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/ids.h"

namespace paceline::scheduler {

/// Who is in a job, as one of its agents knows it, and how those that are left agree on what a lost agent has given
/// before they go on without it (view synchrony: the flush). Sans-I/O and deterministic.
///
///   on_lost(L): of L nothing is taken any more
///     --Flush--> each of the others: what is held of all that are lost, then the word "flushed"
///     <-- the same word of each of the others; what they held came before it
///   Install(L): all that are left hold the same of L. What it has given counts, nothing else of it is waited for
///
/// The head says who is lost, to all, in one order: of two that cannot reach each other only one goes on. Another loss
/// in between starts this again, for all that are lost, so that what an agent had passed on before it died itself
/// reaches everybody or nobody.
class ViewChange {
 public:
  /// Pass on to `to` what is held of those that are lost, and then say so.
  struct Flush {
    NodeId to;
    std::set<NodeId> lost;
  };
  /// It is agreed on what this agent has given: go on without it.
  struct Install {
    NodeId lost;
  };
  using Action = std::variant<Flush, Install>;
  using Actions = std::vector<Action>;

  ViewChange(NodeId self, std::set<NodeId> members);

  /// The head says so; it may do so again.
  Actions on_lost(NodeId node);
  /// `from` holds nothing of those agents that it has not passed on.
  Actions on_flushed(NodeId from, const std::set<NodeId>& lost);

  /// This one, and those that are not lost.
  const std::set<NodeId>& members() const { return members_; }
  /// Equal for those that will answer alike. For tests that walk states.
  std::string fingerprint() const;

 private:
  Actions install_if_flushed();

  NodeId self_;
  std::set<NodeId> members_;
  std::set<NodeId> lost_;
  std::set<NodeId> installed_;
  std::map<NodeId, std::set<NodeId>> flushed_;  ///< Of which lost ones a member has passed on all.
};

}  // namespace paceline::scheduler
