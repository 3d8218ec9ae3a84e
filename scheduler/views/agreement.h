#pragma once

#include <map>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "runtime/base/ids.h"

namespace paceline::scheduler {

/// How the agents of a job whose workers are at versions of their own agree on the version after which something
/// changes for all: the job ends, or those that are left have a graph of their own. This is the part of the leader,
/// which asks. Sans-I/O and deterministic.
///
///   wish --Ask--> all agents, this one, too: nobody there begins anything later than what somebody there has begun
///     <-- each answers with that version
///   Decide --> all agents: the highest of these versions
///
/// One is agreed on after the other, an end as the last one. Who is lost is not waited for.
class Agreement {
 public:
  enum class On { end, graph };
  struct Ask {
    On what;

    bool operator==(const Ask&) const = default;
  };
  struct Decide {
    On what;
    Version last;

    bool operator==(const Decide&) const = default;
  };
  using Action = std::variant<Ask, Decide>;
  using Actions = std::vector<Action>;

  Actions wish(On what);
  /// `left`: the agents that are not lost, this one included.
  Actions on_answer(NodeId from, On what, Version v, const std::set<NodeId>& left);
  /// Another leader, that is lost now, has decided it.
  void on_decided(On what, Version last);
  Actions on_lost(const std::set<NodeId>& left) { return decide_if_answered(left); }

 private:
  Actions decide_if_answered(const std::set<NodeId>& left);

  std::optional<On> asked_;
  std::optional<On> next_;  ///< When that is decided.
  bool ends_ = false;       ///< An end was wished for.
  std::map<NodeId, Version> answers_;
  Version last_graph_{-1};  ///< Where it begins: graphs follow each other.
};

}  // namespace paceline::scheduler
