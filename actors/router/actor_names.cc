// What the router of a node does about the names of its actors. The head decides who has a name; here an actor that
// claims one waits for that, and what has ended gives its name back.
#include <utility>

#include "actors/router/actor_router.h"

namespace paceline::actors {
namespace {

constexpr std::size_t kEndingMax = 4096;

}  // namespace

void ActorRouter::claim(Actions& actions, CreateActor create, NodeId from) {
  actions.push_back(Claim{{create.actor, create.name, create.type, create.owner, create.naming}});
  const auto id = create.actor;
  claiming_.emplace(id, Claiming{std::move(create), from});
}

ActorRouter::Actions ActorRouter::on_claimed(ActorId id, const std::string& name, ActorId holder) {
  Actions actions;
  auto claims = claiming_.extract(id);
  if (claims.empty()) {  // Its owner was gone before, or the head was asked twice.
    if (holder == id && !has_name(id)) actions.push_back(Unclaim{id, name});
    return actions;
  }
  auto [create, origin] = std::move(claims.mapped());
  tell_claimer(actions, create.owner, origin, {id, create.owner, false, {}, holder});
  if (holder != id) return actions;
  if (create.naming.detached) {
    create.owner = kDetached + to_string(id);
    origin = options_.node;
  }
  begin(actions, std::move(create), origin);
  return actions;
}

ActorRouter::Actions ActorRouter::on_claim_refused(ActorId id, const Error& error) {
  Actions actions;
  auto claims = claiming_.extract(id);
  if (claims.empty()) return actions;
  const auto& owner = claims.mapped().create.owner;
  tell_claimer(actions, owner, claims.mapped().origin, {id, owner, true, error, {}});
  never_begins(actions, id, error);
  return actions;
}

void ActorRouter::tell_claimer(Actions& actions, const std::string& owner, NodeId origin, ActorReady ready) const {
  Actor claimer;
  claimer.create.owner = owner;
  claimer.origin = origin;
  tell_owner(actions, claimer, std::move(ready));
}

ActorRouter::Actions ActorRouter::on_name_lost(ActorId id) {
  Actions actions;
  if (!has_name(id)) return actions;
  const auto& actor = actors_.at(id);
  end_living(actions, actor,
             {ErrorKind::cancelled, describe(actor) + " has ended: its node was cut off, and another actor has got its "
                                                      "name meanwhile"},
             true);
  return actions;
}

bool ActorRouter::has_name(ActorId id) const {
  const auto actor = actors_.find(id);
  return actor != actors_.end() && actor->second.create.naming.claims;
}

std::vector<NameClaim> ActorRouter::names() const {
  std::vector<NameClaim> names;
  for (const auto& [id, actor] : actors_) {
    const auto& create = actor.create;
    if (create.naming.claims) names.push_back({id, create.name, create.type, create.owner, create.naming});
  }
  return names;
}

/// An owner of this node that has let an actor of another node go may use its name again at once, whichever of the two
/// words comes to the head first.
void ActorRouter::note_ending(const Remote& remote, ActorId actor) {
  if (remote.name.empty() || remote.detached) return;
  if (ending_.size() >= kEndingMax) ending_.clear();
  ending_[remote.name] = actor;
}

void ActorRouter::note_hindrance(CreateActor& create) {
  if (!create.naming.claims) return;
  if (const auto ends = ending_.extract(create.name)) create.naming.after = ends.mapped();
}

void ActorRouter::kill_actor(Actions& actions, const Actor& actor, const Call& call, NodeId from) {
  answer(actions, call.owner, from, {call.task, call.owner, Bytes{}});  // Before its owner hears of its end.
  const auto why = call.owner + " has killed it";
  end_living(actions, actor, {ErrorKind::cancelled, describe(actor) + " has ended: " + why}, true, why);
}

}  // namespace paceline::actors
