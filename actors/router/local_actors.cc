#include "actors/router/local_actors.h"

#include <algorithm>

#include "actors/causes.h"

namespace paceline::actors::router {
namespace {

/// An actor whose process keeps dying before its constructor has returned is not started for ever, whatever its rule.
constexpr int kDeathsBeforeReadyMax = 5;

std::string times(int count) { return count == 1 ? "once" : std::to_string(count) + " times"; }

}  // namespace

std::string LocalActors::Actor::described() const {
  return create.name.empty() ? "actor " + to_string(create.actor) : "actor '" + create.name + "'";
}

const LocalActors::Actor* LocalActors::find(ActorId id) const {
  const auto actor = actors_.find(id);
  return actor == actors_.end() ? nullptr : &actor->second;
}

void LocalActors::start_worker(const Actor& actor, Executable executable) {
  const auto& create = actor.create;
  workers_.start({{}, std::move(executable), actor.root, create.name, create.type}, create.actor, actor.described());
}

void LocalActors::tell_owner(const Actor& actor, ActorReady ready) const {
  if (actor.create.owner.starts_with(kDetached)) return;  // Its own: nobody is to be told.
  here_.tell(actor.create.owner, actor.origin, std::move(ready));
}

bool LocalActors::is_in_use(ActorId id) const {
  return actors_.contains(id) || claiming_.contains(id) || calls_.has_ended(id);
}

std::optional<Error> LocalActors::why_not(ActorId id) const {
  const auto& options = here_.options;
  if (is_in_use(id)) return Error{ErrorKind::invalid, "actor id " + to_string(id) + " is in use: create it again"};
  if (actors_.size() + claiming_.size() < options.actors_max) return std::nullopt;
  return Error{ErrorKind::overloaded, "node " + to_string(options.node) + " has " + std::to_string(options.actors_max) +
                                          " actors, its bound: " + options.mend};
}

void LocalActors::refuse(const CreateActor& create, NodeId from, const Error& error) {
  const auto id = create.actor;
  here_.tell(create.owner, from, ActorReady{id, {}, true, error});
  if (is_in_use(id) || !here_.is(node_of(id))) return;
  calls_.end(id, error);
  take_early(id);
}

void LocalActors::on_create(CreateActor create, NodeId from) {
  const auto id = create.actor;
  workers_.note_owner(create.owner, from);
  if (!create.naming.claims) return begin(std::move(create), from);
  here_.act(Claim{{id, create.name, create.type, create.owner, create.naming}});
  claiming_.emplace(id, Claiming{std::move(create), from});
}

void LocalActors::on_claimed(ActorId id, const std::string& name, ActorId holder) {
  auto claiming = claiming_.extract(id);
  if (claiming.empty()) {  // Its owner was gone before, or the head was asked twice.
    if (holder == id && !has_name(id)) here_.act(Unclaim{id, name});
    return;
  }
  auto& [create, origin] = claiming.mapped();
  here_.tell(create.owner, origin, ActorReady{id, {}, false, {}, holder});
  if (holder != id) return;
  if (create.naming.detached) {
    create.owner = kDetached + to_string(id);
    origin = here_.options.node;
  }
  begin(std::move(create), origin);
}

void LocalActors::on_claim_refused(ActorId id, const Error& error) {
  if (const auto claiming = claiming_.extract(id)) refuse(claiming.mapped().create, claiming.mapped().origin, error);
}

void LocalActors::begin(CreateActor create, NodeId from) {
  const auto root = create.naming.detached ? create.owner : workers_.root_of(create.owner, from);
  const auto id = create.actor;
  Actor& actor = actors_.emplace(id, Actor{std::move(create), root, from}).first->second;
  auto executable = std::exchange(actor.create.executable, {});
  if (actor.restartable()) actor.executable = executable;
  start_worker(actor, std::move(executable));
  calls_.begin(id, actor.create.rule, actor.create.job.value != 0);
  take_early(id);
}

void LocalActors::take_early(ActorId id) {
  for (auto& early : calls_.take_early(id)) on_call(std::move(early.call), early.from);
}

void LocalActors::on_call(Call call, NodeId from) {
  const auto id = call.actor;
  const auto caller = call.owner;
  if (!calls_.on_call(std::move(call), from)) return;
  const auto why = caller + " has killed it";
  end_actor(id, ErrorKind::cancelled, why, true, why);
}

void LocalActors::on_worker_ready(ActorId id) {
  auto& create = actors_.at(id).create;
  here_.act(Send{worker_peer(workers_.of_actor(id)), create});
  if (create.rule.restarts == 0) create.arguments.clear();
  calls_.send_queue(id);
}

void LocalActors::on_actor_ready(ActorReady ready) {
  const auto found = actors_.find(ready.actor);
  if (found == actors_.end()) return;
  Actor& actor = found->second;
  if (actor.restarts > 0 && !ready.dead && !ready.error.text.empty())
    ready.error.text += ", when it was started again (" + times(actor.restarts) + ")";
  if (ready.error.text.empty()) {
    actor.deaths_before_ready = 0;
    actor.constructed = true;
    tell_owner(actor, std::move(ready));
    return;
  }
  const auto worker = workers_.of_actor(ready.actor);
  forget(ready.actor, ready.error, true);
  workers_.kill(worker);
}

void LocalActors::on_leaving(ActorId id) {
  if (const auto actor = actors_.find(id); actor != actors_.end()) actor->second.leaving = true;
}

void LocalActors::forget(ActorId id, const Error& reason, bool tell) {
  const auto actor = std::move(actors_.extract(id).mapped());
  orphans_.erase(id);
  if (actor.create.naming.claims) here_.act(Unclaim{id, actor.create.name});
  if (actor.restartable()) here_.act(Forget{id});
  calls_.end(id, reason);
  if (tell) tell_owner(actor, {id, {}, true, reason});
}

void LocalActors::end_actor(ActorId id, ErrorKind kind, const std::string& because, bool tell, const std::string& why) {
  const auto& actor = actors_.at(id);
  const auto worker = workers_.of_actor(id);
  const auto root = actor.root;
  forget(id, Error{kind, actor.described() + " has ended: " + because}, tell);
  workers_.kill(worker, why);
  loans_.end_root_if_unused(root);
}

bool LocalActors::will_restart(ActorId id) const {
  const auto* const actor = find(id);
  return actor && may_restart(*actor);
}

bool LocalActors::may_restart(const Actor& actor) const {
  const auto& rule = actor.create.rule;
  const auto counted = rule.within > Duration::zero()
                           ? std::count_if(actor.restarted.begin(), actor.restarted.end(),
                                           [&](Instant at) { return here_.now - at < rule.within; })
                           : actor.restarts;
  return !actor.leaving && rule.may_restart(static_cast<int>(counted)) &&
         actor.deaths_before_ready < kDeathsBeforeReadyMax;
}

/// Starts the actor's next process. False: it is not to be started again.
bool LocalActors::restart(Actor& actor, WorkerId worker, const std::string& how, const std::string& log) {
  const bool may = may_restart(actor);
  ++actor.deaths_before_ready;
  if (!may) return false;
  ++actor.restarts;
  if (actor.create.rule.within > Duration::zero()) actor.restarted.push_back(here_.now);
  actor.constructed = false;
  actor.ended = began({ErrorKind::disconnected,
                       actor.described() + " is started again, and whether it has done this call is unknown: " +
                           to_string(place_of(worker)) + " " + how},
                      place_of(worker, log), actor.described(), how);
  calls_.on_death(actor.create.actor, actor.ended);
  start_worker(actor, actor.executable);
  return true;
}

void LocalActors::on_worker_gone(ActorId id, WorkerId worker, const std::string& how, const std::string& log) {
  const auto found = actors_.find(id);
  if (found == actors_.end() || restart(found->second, worker, how, log)) return;
  const Actor& actor = found->second;
  auto restarted = actor.restarts > 0 ? ", restarted " + times(actor.restarts) : std::string();
  if (actor.deaths_before_ready > kDeathsBeforeReadyMax)
    restarted += ", the last " + times(kDeathsBeforeReadyMax) + " without coming through its constructor";
  const auto ended = actor.leaving
                         ? " has ended: it has called paceline::exit(), and did not come through its destructor: "
                         : " is dead" + restarted + ": ";
  const Error error{ErrorKind::disconnected, actor.described() + ended + to_string(place_of(worker)) + " " + how};
  forget(id, began(error, place_of(worker, log), actor.described(), how), true);
}

void LocalActors::release(ActorId id, const std::string& owner, NodeId from, bool owner_died) {
  if (const auto claiming = claiming_.find(id); claiming != claiming_.end() && claiming->second.create.owner == owner)
    claiming_.erase(claiming);  // Where the name is granted none the less it is given back.
  const auto* const actor = find(id);
  if (!actor || actor->create.owner != owner || actor->origin != from) return;
  if (owner_died) {
    end_actor(id, ErrorKind::disconnected, "owner died: " + owner, false, {});
  } else {
    end_actor(id, ErrorKind::cancelled, "its last handle is gone", false, {});
  }
}

void LocalActors::on_owner_gone(const std::string& owner) {
  std::vector<ActorId> its;
  for (const auto& [id, actor] : actors_)
    if (actor.create.owner == owner && here_.is(actor.origin)) its.push_back(id);
  for (const auto& [id, claiming] : claiming_)
    if (claiming.create.owner == owner) its.push_back(id);
  for (const ActorId id : its) release(id, owner, here_.options.node, true);
}

void LocalActors::on_node_lost(NodeId node, const std::set<JobId>& jobs) {
  std::vector<std::pair<ActorId, std::string>> over;
  for (auto& [id, actor] : actors_) {
    if (actor.origin != node) continue;
    if (jobs.contains(actor.create.job)) {
      actor.outlives = true;
      orphans_.try_emplace(id, here_.now + here_.options.owner_patience);  // It may be said again.
    } else {
      over.emplace_back(id, actor.create.owner);
    }
  }
  for (const auto& [id, claiming] : claiming_)
    if (claiming.origin == node) over.emplace_back(id, claiming.create.owner);
  for (const auto& [id, owner] : over) release(id, owner, node, true);
}

Result<void> LocalActors::on_call_again(Call call, NodeId from, const std::set<JobId>& jobs) {
  const auto id = call.actor;
  const auto found = actors_.find(id);
  if (found == actors_.end()) {
    if (calls_.has_ended(id)) return tl::unexpected(calls_.why_none(id));
    return fail(ErrorKind::disconnected, "actor " + to_string(id) + " was lost with its owner's agent before node " +
                                             to_string(here_.options.node) + " had heard of it");
  }
  Actor& actor = found->second;
  const auto described = actor.described();
  if (actor.create.owner != call.owner || actor.create.job.value == 0)
    return fail(ErrorKind::invalid, described + " is not " + call.owner + "'s, or works for no job");
  if (!jobs.contains(actor.create.job)) {
    end_actor(id, ErrorKind::cancelled, "its job is over", false, {});
    return tl::unexpected(calls_.why_none(id));
  }
  actor.origin = from;
  actor.outlives = true;
  orphans_.erase(id);
  workers_.note_owner(call.owner, from);
  if (!calls_.on_call_again(std::move(call), from))
    return fail(ErrorKind::disconnected, described + " has never had this call: it was lost with a node");
  return {};
}

void LocalActors::on_driver_moved(const std::string& driver, NodeId to) {
  for (auto& [id, actor] : actors_) move_output(actor.executable, driver, to);
}

void LocalActors::on_job_closed(JobId job) {
  std::vector<ActorId> its;
  for (const auto& [id, actor] : actors_)
    if (actor.create.job == job && actor.outlives) its.push_back(id);
  for (const ActorId id : its) end_actor(id, ErrorKind::cancelled, "its job is over", true, {});
}

void LocalActors::tick() {
  std::vector<ActorId> left_alone;
  for (const auto& [id, until] : orphans_)
    if (until <= here_.now) left_alone.push_back(id);
  for (const ActorId id : left_alone) end_actor(id, ErrorKind::disconnected, "its owner's node is gone", false, {});
}

std::optional<Instant> LocalActors::next_deadline() const {
  std::optional<Instant> next;
  for (const auto& [id, until] : orphans_) next = earlier(next, until);
  return next;
}

bool LocalActors::has_name(ActorId id) const {
  const auto* const actor = find(id);
  return actor && actor->create.naming.claims;
}

std::vector<NameClaim> LocalActors::names() const {
  std::vector<NameClaim> names;
  for (const auto& [id, actor] : actors_) {
    const auto& create = actor.create;
    if (create.naming.claims) names.push_back({id, create.name, create.type, create.owner, create.naming});
  }
  return names;
}

void LocalActors::add_to(WorkerView& view) const {
  const auto* const actor = find(view.actor);
  if (!actor) return;
  view.restarts = actor->restarts;
  view.restarts_max = actor->create.rule.restarts;
  view.actor_name = actor->create.name;
  view.type = actor->create.type;
  view.owner = actor->create.owner;
  view.detached = actor->create.naming.detached;
  view.constructed = actor->constructed;
}

}  // namespace paceline::actors::router
