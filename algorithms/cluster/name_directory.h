#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "actors/named.h"
#include "actors/process_ids.h"
#include "runtime/base/result.h"

namespace paceline::cluster {

/// Which living actor of the cluster has which name. The head's, which is told by the agents; sans I/O.
///
///   nobody has it --claim--> the actor has it --unclaim, its node is gone--> nobody has it
///                                  | another claims it, or asks for it
///                                  v
///             its agent is asked: does it still have it? --yes--> refused, or found   --no--> as if it were free
///
/// So a death that an asker has heard of is never ahead of what it is answered here: the agent's word of it came before
/// the agent's answer. Each request has a number of the caller's, and one answer. Bound: what agents claim, whose
/// actors are bounded.
class NameDirectory {
 public:
  /// The request is answered: this actor has the name.
  struct Found {
    std::uint64_t request = 0;
    ActorId actor;
  };
  struct Refused {
    std::uint64_t request = 0;
    Error error;
  };
  /// Ask the node's agent whether the actor has its name; on_confirmed() follows, or on_node_gone().
  struct Confirm {
    std::uint64_t request = 0;
    NodeId node;
    ActorId actor;
  };
  /// The node that was asked is gone: make the request again, once the nodes are there again.
  struct Again {
    std::uint64_t request = 0;
  };
  using Action = std::variant<Found, Refused, Confirm, Again>;
  using Actions = std::vector<Action>;

  Actions on_claim(std::uint64_t request, const actors::NameClaim& claim);
  /// Of any class where `type` is empty.
  Actions on_find(std::uint64_t request, const std::string& name, const std::string& type);
  Actions on_confirmed(std::uint64_t request, bool has);
  void on_unclaim(const std::string& name, ActorId actor);
  /// All that actors of the node have. Returns those that another actor has meanwhile.
  std::vector<ActorId> on_told(NodeId node, const std::vector<actors::NameClaim>& names);
  Actions on_node_gone(NodeId node);

  /// By name.
  const std::map<std::string, actors::NameClaim>& names() const { return names_; }
  /// Of which actors have names.
  std::set<NodeId> nodes() const;

 private:
  struct Asked {
    actors::NameClaim wanted;  ///< Actor 0: only asked for.
    ActorId holder;
  };

  Action decide(std::uint64_t request, const actors::NameClaim& wanted, bool confirmed);
  Error unknown(const std::string& name) const;

  std::map<std::string, actors::NameClaim> names_;
  std::map<std::uint64_t, Asked> asked_;
};

}  // namespace paceline::cluster
