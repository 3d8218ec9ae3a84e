#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "actors/router/router_actions.h"

namespace paceline::actors::router {

/// Actors of other nodes that processes of this one own. Sans-I/O; owned by the router.
class RemoteActors {
 public:
  struct Remote {
    std::string owner;
    std::string name{};  ///< That it claims.
    bool detached = false;
  };

  explicit RemoteActors(Here& here) : here_(here) {}

  void add(ActorId actor, Remote remote) { actors_.insert_or_assign(actor, std::move(remote)); }
  /// What its agent says of it, to its owner.
  void on_actor_ready(const ActorReady& ready) {
    const auto remote = actors_.find(ready.actor);
    if (remote == actors_.end()) return;
    const bool is_over = ready.dead || !ready.error.text.empty();
    const bool is_nobodys =
        ready.named.value != 0 && (ready.named != ready.actor || remote->second.detached);  // Nobody here owns it.
    if (is_over || is_nobodys) actors_.erase(remote);
  }
  /// An owner of this node that has let an actor of another node go may use its name again at once, whichever of the
  /// two words comes to the head first.
  void release(ActorId actor, const std::string& owner, bool owner_died) {
    const auto remote = actors_.find(actor);
    if (remote == actors_.end() || remote->second.owner != owner) return;
    if (const auto& name = remote->second.name; !name.empty() && !remote->second.detached) {
      if (ending_.size() >= kEndingMax) ending_.clear();
      ending_[name] = actor;
    }
    here_.act(Forward{node_of(actor), Release{{actor}, owner_died}, owner});
    actors_.erase(remote);
  }
  void on_owner_gone(const std::string& owner) {
    std::vector<ActorId> its;
    for (const auto& [id, remote] : actors_)
      if (remote.owner == owner) its.push_back(id);
    for (const ActorId id : its) release(id, owner, true);
  }
  void note_hindrance(CreateActor& create) {
    if (!create.naming.claims) return;
    if (const auto ends = ending_.extract(create.name)) create.naming.after = ends.mapped();
  }
  void on_node_lost(NodeId node) {
    std::erase_if(ending_, [&](const auto& entry) { return node_of(entry.second) == node; });
  }

  /// With their owners.
  std::vector<std::pair<ActorId, std::string>> on(NodeId node) const {
    std::vector<std::pair<ActorId, std::string>> there;
    for (auto at = actors_.lower_bound(actor_id(node, 0, 0)); at != actors_.end() && node_of(at->first) == node; ++at)
      there.emplace_back(at->first, at->second.owner);
    return there;
  }
  /// That it claims; empty: none, or unknown.
  std::string name_of(ActorId actor) const {
    const auto remote = actors_.find(actor);
    return remote == actors_.end() ? std::string() : remote->second.name;
  }
  std::size_t size() const { return actors_.size(); }

 private:
  static constexpr std::size_t kEndingMax = 4096;

  Here& here_;
  std::map<ActorId, Remote> actors_;
  std::map<std::string, ActorId> ending_;  // Names of those that have been told to end.
};

}  // namespace paceline::actors::router
