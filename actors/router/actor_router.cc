#include "actors/router/actor_router.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <utility>

#include "actors/causes.h"

namespace paceline::actors {
namespace {

/// An actor whose process keeps dying before its constructor has returned is not started for ever, whatever its rule.
constexpr int kDeathsBeforeReadyMax = 5;
constexpr const char* kUnsaid = " has not said how its workers are started";

std::string short_name(WorkerId worker) { return to_string(place_of(worker)); }

std::string times(int count) { return count == 1 ? "once" : std::to_string(count) + " times"; }

void set_output(Executable& executable, const Executable& from) {
  executable.logs = from.logs;
  executable.logs_if_printed = from.logs_if_printed;
  executable.driver = from.driver;
  executable.driver_node = from.driver_node;
}

}  // namespace

std::string ActorRouter::describe(const Actor& actor) const {
  return actor.create.name.empty() ? "actor " + to_string(actor.create.actor) : "actor '" + actor.create.name + "'";
}

/// The root of a worker of this node is that of whoever it was started for; everybody else is a root.
std::string ActorRouter::root_of(const std::string& owner, NodeId from) const {
  const auto id = worker_named(owner);
  if (!is_here(from) || !id) return owner;
  const auto worker = workers_.find(*id);
  return worker == workers_.end() ? owner : worker->second.root;
}

/// Roots that are connected to this node keep their workers while they are.
void ActorRouter::note_owner(const std::string& owner, NodeId from) {
  if (is_here(from) && root_of(owner, from) == owner) owners_here_.insert(owner);
}

void ActorRouter::on_executable(const std::string& owner, Executable executable) {
  if (const auto id = worker_named(owner)) {
    const auto worker = workers_.find(*id);
    set_output(executable, worker == workers_.end() ? Executable{} : worker->second.output);
  } else if (!executable.driver.empty()) {
    executable.driver = owner;
    executable.driver_node = options_.node;
  }
  executables_.insert_or_assign(owner, std::move(executable));
}

const Executable* ActorRouter::executable_of(const std::string& peer, const std::string& otherwise) const {
  auto known = executables_.find(peer);
  if (known == executables_.end()) known = executables_.find(otherwise);
  return known == executables_.end() ? nullptr : &known->second;
}

WorkerId ActorRouter::start_worker(Actions& actions, Executable executable, const std::string& root, ActorId actor,
                                   std::string name, std::string description, std::string type) {
  const WorkerId worker = worker_id(options_.node, next_worker_++);
  Worker& added = workers_.emplace(worker, Worker{root, std::move(description), actor, false, false}).first->second;
  set_output(added.output, executable);
  added.started = now_;
  actions.push_back(Fork{worker, std::move(executable), root, std::move(name), std::move(type)});
  return worker;
}

ActorRouter::Warn ActorRouter::warning_about(WorkerId id, const std::string& what) const {
  const auto worker = workers_.find(id);
  if (worker == workers_.end()) return {{}, {}, short_name(id) + " " + what};
  const auto& output = worker->second.output;
  const auto actor = actors_.find(worker->second.actor);
  const auto whose = actor == actors_.end() ? "runs tasks" : describe(actor->second);
  return {output.driver, output.driver_node, short_name(id) + " (" + whose + ") " + what};
}

void ActorRouter::kill(Actions& actions, WorkerId worker, const std::string& why) {
  const auto found = workers_.find(worker);
  if (found == workers_.end() || std::exchange(found->second.ending, true)) return;
  actions.push_back(Kill{worker, why});
}

void ActorRouter::answer(Actions& actions, const std::string& owner, NodeId origin, CallResult result) const {
  result.owner = owner;
  if (is_here(origin)) {
    actions.push_back(Send{owner, std::move(result)});
  } else {
    actions.push_back(Forward{origin, std::move(result), owner});
  }
}

void ActorRouter::tell_owner(Actions& actions, const Actor& actor, ActorReady ready) const {
  ready.owner = actor.create.owner;
  if (ready.owner.starts_with(kDetached)) return;  // Its own: nobody is to be told.
  if (is_here(actor.origin)) {
    actions.push_back(Send{ready.owner, std::move(ready)});
  } else {
    actions.push_back(Forward{actor.origin, std::move(ready), actor.create.owner});
  }
}

void ActorRouter::remember_dead(ActorId actor, Error reason) {
  if (dead_.insert_or_assign(actor, std::move(reason)).second) dead_order_.push_back(actor);
  while (dead_order_.size() > options_.dead_max) {
    dead_.erase(dead_order_.front());
    dead_order_.pop_front();
  }
}

ActorRouter::Actions ActorRouter::on_create(CreateActor create, NodeId from) {
  Actions actions;
  const auto node = node_of(create.actor);
  const auto owner = create.owner;
  const bool in_use =
      actors_.contains(create.actor) || dead_.contains(create.actor) || claiming_.contains(create.actor);
  const auto refuse = [&](ErrorKind kind, std::string text) {
    Actor refused{create, {}, from, {}, {}, {}};
    const Error error{kind, std::move(text)};
    tell_owner(actions, refused, {create.actor, owner, true, error});
    if (!in_use && is_here(node)) never_begins(actions, create.actor, error);
    return actions;
  };
  if (is_here(from)) {
    const auto* const executable = executable_of(owner, root_of(owner, from));
    if (!executable) return refuse(ErrorKind::invalid, owner + kUnsaid);
    create.executable = *executable;
  }
  if (!is_here(node)) {
    if (!is_here(from))
      return refuse(ErrorKind::invalid, "node " + to_string(node) + " was asked for through the wrong node");
    note_hindrance(create);
    remote_[create.actor] = {owner, root_of(owner, from), create.naming.claims ? create.name : "",
                             create.naming.detached};
    note_owner(owner, from);
    actions.push_back(Forward{node, std::move(create), owner});
    return actions;
  }
  if (in_use) return refuse(ErrorKind::invalid, "actor id " + to_string(create.actor) + " is in use: create it again");
  if (actors_.size() + claiming_.size() >= options_.actors_max) {
    return refuse(ErrorKind::overloaded, "node " + to_string(options_.node) + " has " +
                                             std::to_string(options_.actors_max) +
                                             " actors, its bound: " + options_.mend);
  }
  if (is_here(from)) note_hindrance(create);
  note_owner(owner, from);
  create.naming.claims ? claim(actions, std::move(create), from) : begin(actions, std::move(create), from);
  return actions;
}

void ActorRouter::begin(Actions& actions, CreateActor create, NodeId from) {
  const auto root = create.naming.detached ? create.owner : root_of(create.owner, from);
  const auto id = create.actor;
  Actor actor{std::move(create), root, from, {}, {}, {}};
  auto executable = std::exchange(actor.create.executable, {});
  if (actor.restartable()) actor.executable = executable;
  actor.worker =
      start_worker(actions, std::move(executable), root, id, actor.create.name, describe(actor), actor.create.type);
  actors_.emplace(id, std::move(actor));
  take_early(actions, id);
}

/// Who has called it before hears why.
void ActorRouter::never_begins(Actions& actions, ActorId actor, const Error& reason) {
  remember_dead(actor, reason);
  take_early(actions, actor);
}

void ActorRouter::take_early(Actions& actions, ActorId actor) {
  for (auto& early : early_.take(actor)) {
    auto more = on_call(std::move(early.call), early.from);
    std::move(more.begin(), more.end(), std::back_inserter(actions));
  }
}

Error ActorRouter::unknown(ActorId actor) const {
  return {ErrorKind::not_found, "actor " + to_string(actor) + " does not exist on node " + to_string(options_.node)};
}

std::optional<Instant> ActorRouter::next_deadline() const {
  if (!unsent_.empty()) return now_;
  auto next = earlier(early_.next_deadline(), lending_.next_deadline());
  for (const auto& [id, until] : orphans_) next = earlier(next, until);
  return next;
}

ActorRouter::Actions ActorRouter::on_call(Call call, NodeId from) {
  Actions actions;
  const auto task = call.task;
  const auto owner = call.owner;
  const auto node = node_of(call.actor);
  const auto refuse = [&](ErrorKind kind, std::string text) {
    answer(actions, owner, from, {task, owner, fail(kind, std::move(text))});
    return actions;
  };
  if (in_flight_.size() + early_.size() >= options_.calls_max) {
    return refuse(ErrorKind::overloaded, "node " + to_string(options_.node) + " has " +
                                             std::to_string(options_.calls_max) +
                                             " calls in flight, its bound: wait for some first");
  }
  if (in_flight_.contains(task)) return refuse(ErrorKind::invalid, "call id " + to_string(task) + " is in use");
  if (!is_here(node)) {
    if (!is_here(from))
      return refuse(ErrorKind::invalid, "a call for node " + to_string(node) + " came through the wrong node");
    in_flight_.emplace(task, InFlight{owner, from, node, call.actor});
    called_.insert(node);
    actions.push_back(Forward{node, std::move(call), owner});
    return actions;
  }
  const auto actor = actors_.find(call.actor);
  if (actor == actors_.end()) {
    if (const auto dead = dead_.find(call.actor); dead != dead_.end()) {
      answer(actions, owner, from, {task, owner, tl::unexpected(dead->second)});
      return actions;
    }
    if (process_of(call.actor) == 0) return refuse(ErrorKind::not_found, unknown(call.actor).text);
    early_.add(std::move(call), from, now_ + options_.creation_max);
    return actions;
  }
  if (call.kill) {
    kill_actor(actions, actor->second, call, from);
    return actions;
  }
  in_flight_.emplace(task, InFlight{owner, from, node, call.actor});
  actor->second.calls.insert(task);
  if (takes_calls(actor->second) && actor->second.queue.empty()) {
    send_to_worker(actions, actor->second, std::move(call));
  } else {
    actor->second.queue.push_back(std::move(call));
  }
  return actions;
}

/// The owner's agent is gone, and it has another one: what it is told of its actor goes there.
ActorRouter::Actions ActorRouter::on_call_again(Call call, NodeId from, const std::set<JobId>& jobs) {
  Actions actions;
  const auto task = call.task;
  const auto owner = call.owner;
  const auto node = node_of(call.actor);
  const auto refuse = [&](Error error) {
    answer(actions, owner, from, {task, owner, tl::unexpected(std::move(error))});
    return actions;
  };
  if (!is_here(node)) {
    const auto known = in_flight_.find(task);
    if (!is_here(from) ||
        (known != in_flight_.end() && (known->second.owner != owner || known->second.actor != call.actor)))
      return refuse({ErrorKind::invalid, "call " + to_string(task) + " cannot be made again through this node"});
    in_flight_.insert_or_assign(task, InFlight{owner, from, node, call.actor});
    remote_[call.actor] = {owner, root_of(owner, from)};
    note_owner(owner, from);
    actions.push_back(Forward{node, std::move(call), owner});
    return actions;
  }
  const auto found = actors_.find(call.actor);
  if (found == actors_.end()) {
    if (const auto dead = dead_.find(call.actor); dead != dead_.end()) return refuse(dead->second);
    return refuse({ErrorKind::disconnected, "actor " + to_string(call.actor) +
                                                " was lost with its owner's agent before node " +
                                                to_string(options_.node) + " had heard of it"});
  }
  Actor& actor = found->second;
  if (actor.create.owner != owner || actor.create.job.value == 0)
    return refuse({ErrorKind::invalid, describe(actor) + " is not " + owner + "'s, or works for no job"});
  if (!jobs.contains(actor.create.job)) {
    const Error over{ErrorKind::cancelled, describe(actor) + " has ended: its job is over"};
    end_living(actions, actor, over, false);
    return refuse(over);
  }
  actor.origin = from;
  actor.outlives = true;
  orphans_.erase(call.actor);
  note_owner(owner, from);
  if (const auto flies = in_flight_.find(task); flies != in_flight_.end() && flies->second.actor == call.actor) {
    flies->second.origin = from;
  } else if (const auto answered = actor.answered.find(task); answered != actor.answered.end()) {
    answer(actions, owner, from, answered->second);
  } else {
    return refuse({ErrorKind::disconnected, describe(actor) + " has never had this call: it was lost with a node"});
  }
  return actions;
}

bool ActorRouter::takes_calls(const Actor& actor) const {
  const auto& worker = workers_.at(actor.worker);
  return worker.ready && !worker.ending && !worker.cut_off;
}

void ActorRouter::send_to_worker(Actions& actions, Actor& actor, Call call) {
  if (actor.restartable())
    actor.sent.add({call.task, actor.create.rule.call_retries == 0 ? Call{} : call, call.resent});
  actions.push_back(Send{worker_peer(actor.worker), std::move(call)});
}

ActorRouter::Actions ActorRouter::on_worker_ready(WorkerId worker) {
  Actions actions;
  const auto found = workers_.find(worker);
  if (found == workers_.end() || found->second.ready || found->second.ending) return actions;
  found->second.ready = true;
  if (found->second.actor.value == 0) {
    lending_.on_ready(worker);
    dispatch(actions);
    return actions;
  }
  auto& actor = actors_.at(found->second.actor);
  actions.push_back(Send{worker_peer(worker), actor.create});
  if (!actor.restartable()) actor.create.arguments.clear();
  send_queue(actions, found->second.actor, actor);
  return actions;
}

void ActorRouter::send_queue(Actions& actions, ActorId id, Actor& actor) {
  for (std::size_t sent = 0; sent < options_.calls_a_turn && !actor.queue.empty() && takes_calls(actor); ++sent) {
    send_to_worker(actions, actor, std::move(actor.queue.front()));
    actor.queue.pop_front();
  }
  if (!actor.queue.empty() && takes_calls(actor)) unsent_.insert(id);
}

ActorRouter::Actions ActorRouter::on_actor_ready(ActorReady ready) {
  Actions actions;
  if (!is_here(node_of(ready.actor))) {  // From another node, for an owner here.
    const bool over = ready.dead || !ready.error.text.empty();
    if (const auto remote = remote_.find(ready.actor); ready.named.value != 0 && remote != remote_.end())
      if (ready.named != ready.actor || remote->second.detached) remote_.erase(remote);  // Nobody here owns it.
    if (over) {
      remote_.erase(ready.actor);
      std::erase_if(in_flight_, [&](const auto& entry) {
        if (entry.second.actor != ready.actor) return false;
        answer(actions, entry.second.owner, entry.second.origin, {entry.first, {}, tl::unexpected(ready.error)});
        return true;
      });
    }
    actions.push_back(Send{ready.owner, std::move(ready)});
    return actions;
  }
  const auto actor = actors_.find(ready.actor);
  if (actor == actors_.end()) return actions;
  if (actor->second.restarts > 0 && !ready.dead && !ready.error.text.empty())
    ready.error.text += ", when it was started again (" + times(actor->second.restarts) + ")";
  if (ready.error.text.empty()) {
    actor->second.deaths_before_ready = 0;
    actor->second.constructed = true;
    tell_owner(actions, actor->second, std::move(ready));
    return actions;
  }
  const auto worker = actor->second.worker;
  end_actor(actions, ready.actor, ready.error, true);
  kill(actions, worker);
  return actions;
}

void ActorRouter::on_leaving(WorkerId worker) {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  if (const auto actor = actors_.find(found->second.actor); actor != actors_.end()) actor->second.leaving = true;
}

void ActorRouter::end_actor(Actions& actions, ActorId id, const Error& reason, bool tell) {
  const auto found = actors_.find(id);
  if (found == actors_.end()) return;
  const auto actor = std::move(found->second);
  actors_.erase(found);
  orphans_.erase(id);
  remember_dead(id, reason);
  if (actor.create.naming.claims) actions.push_back(Unclaim{id, actor.create.name});
  if (actor.restartable()) actions.push_back(Forget{id});
  for (auto task : actor.calls) {
    const auto call = in_flight_.extract(task);
    answer(actions, call.mapped().owner, call.mapped().origin, {task, {}, tl::unexpected(reason)});
  }
  if (tell) tell_owner(actions, actor, {id, actor.create.owner, true, reason});
}

/// With its worker, of whose end is heard `why`.
void ActorRouter::end_living(Actions& actions, const Actor& actor, const Error& reason, bool tell,
                             const std::string& why) {
  const auto worker = actor.worker;
  const auto root = actor.root;
  end_actor(actions, actor.create.actor, reason, tell);
  kill(actions, worker, why);
  end_root_if_unused(actions, root);
}

/// It has its answer: nothing knows it any more. Nothing: nobody did.
std::optional<ActorRouter::InFlight> ActorRouter::end_call(TaskId task) {
  auto call = in_flight_.extract(task);
  if (call.empty()) return std::nullopt;
  if (const auto actor = actors_.find(call.mapped().actor); actor != actors_.end()) {
    actor->second.calls.erase(task);
    actor->second.sent.remove(task);
  }
  return std::move(call.mapped());
}

/// Starts the actor's next process. What its dead one had taken fails or is sent again, before what waits. False: it is
/// not to be started again.
bool ActorRouter::restart(Actions& actions, Actor& actor, WorkerId worker, const std::string& how,
                          const std::string& log) {
  const auto& rule = actor.create.rule;
  if (actor.leaving || !rule.may_restart(actor.restarts) || ++actor.deaths_before_ready > kDeathsBeforeReadyMax)
    return false;
  ++actor.restarts;
  actor.constructed = false;
  actor.ended = began(
      {ErrorKind::disconnected, describe(actor) + " is started again, and whether it has done this call is unknown: " +
                                    short_name(worker) + " " + how},
      place_of(worker, log), describe(actor), how);
  auto outcome = actor.sent.on_death(rule);
  for (const auto task : outcome.failed) {
    if (const auto call = end_call(task))
      answer(actions, call->owner, call->origin, {task, {}, tl::unexpected(actor.ended)});
  }
  for (auto again = outcome.again.rbegin(); again != outcome.again.rend(); ++again) {
    again->call.resent = again->resent;
    actor.queue.push_front(std::move(again->call));
  }
  actor.worker = start_worker(actions, actor.executable, actor.root, actor.create.actor, actor.create.name,
                              describe(actor), actor.create.type);
  return true;
}

bool ActorRouter::was_asked(const InFlight& call, const std::string& peer) const {
  return !is_here(call.target) || peer == worker_peer(worker_of(call.actor));
}

ActorRouter::Actions ActorRouter::on_result(CallResult result, const std::string& from) {
  Actions actions;
  if (result.by_line) {
    const auto owner = result.owner;
    answer(actions, owner, options_.node, std::move(result));
    return actions;
  }
  if (const auto found = in_flight_.find(result.task); found != in_flight_.end()) {
    if (!was_asked(found->second, from)) return actions;
    if (result.item > 0) {
      answer(actions, found->second.owner, found->second.origin, std::move(result));
      return actions;
    }
    const auto call = *end_call(result.task);
    if (const auto actor = actors_.find(call.actor); actor != actors_.end() && actor->second.create.job.value != 0)
      actor->second.answered.insert_or_assign(result.task, result);
    answer(actions, call.owner, call.origin, std::move(result));
    return actions;
  }
  // A task: of a worker that is lent to its owner, or of one that another node has lent.
  const auto worker = worker_named(from);
  if (const auto* const lent = worker ? lending_.lent(*worker) : nullptr; lent && lent->owner.name == result.owner) {
    answer(actions, lent->owner.name, lent->owner.node, std::move(result));
  } else if (!worker) {
    const auto owner = result.owner;
    answer(actions, owner, options_.node, std::move(result));
  }
  return actions;
}

ActorRouter::Actions ActorRouter::on_wants(const Wants& wants, NodeId from) {
  Actions actions;
  const Lending::Owner owner{wants.owner, from};
  const auto root = is_here(from) ? root_of(wants.owner, from) : wants.root;
  if (wants.gone) {
    on_borrower_gone(actions, owner, root);
    if (!is_here(from)) executables_.erase(wants.owner);
    end_root_if_unused(actions, root);
    dispatch(actions);
    return actions;
  }
  if (!is_here(from) && !wants.executable.path.empty()) executables_.insert_or_assign(wants.owner, wants.executable);
  for (const auto* list : {&wants.returned, &wants.broken}) {
    for (const WorkerId worker : *list) {
      const auto* const lent = lending_.lent(worker);
      const bool its_own = lent != nullptr && lent->owner == owner;
      if (const auto there = lending_.on_returned(owner, worker)) {
        Wants word;
        word.shape = there->shape;
        word.workers = there->workers;
        (list == &wants.returned ? word.returned : word.broken).push_back(worker);
        word.owner = wants.owner;
        word.root = root;
        actions.push_back(Forward{there->node, std::move(word), wants.owner});
      } else if (list == &wants.broken && its_own) {
        kill(actions, worker);
      }
    }
  }
  note_owner(wants.owner, from);
  if (const auto wanted = lending_.on_wants(owner, root, wants.shape, wants.workers); !wanted)
    refuse_loan(actions, {owner, wants.shape}, wanted.error());
  dispatch(actions);
  return actions;
}

void ActorRouter::tell_borrower(Actions& actions, const Lending::Owner& owner, Loan loan) const {
  loan.owner = owner.name;
  if (is_here(owner.node)) {
    actions.push_back(Send{owner.name, std::move(loan)});
  } else {
    actions.push_back(Forward{owner.node, std::move(loan), owner.name});
  }
}

void ActorRouter::refuse_loan(Actions& actions, const Lending::Lent& wanted, const Error& error) const {
  Loan loan;
  loan.kind = Loan::Kind::refused;
  loan.shape = wanted.shape;
  loan.error = error;
  tell_borrower(actions, wanted.owner, std::move(loan));
}

void ActorRouter::tell_gone(Actions& actions, const Lending::Lent& lent, WorkerId worker, Error reason) const {
  Loan loan;
  loan.kind = Loan::Kind::gone;
  loan.shape = lent.shape;
  loan.worker = worker;
  loan.error = std::move(reason);
  tell_borrower(actions, lent.owner, std::move(loan));
}

ActorRouter::Actions ActorRouter::on_push(PushTask push, NodeId from) {
  Actions actions;
  if (const NodeId node = node_of(push.worker); !is_here(node)) {
    if (is_here(from)) {
      const auto owner = push.owner;
      actions.push_back(Forward{node, std::move(push), owner});
    }
    return actions;
  }
  const auto* const lent = lending_.lent(push.worker);
  if (lent != nullptr && lent->owner == Lending::Owner{push.owner, from})
    actions.push_back(Send{worker_peer(push.worker), std::move(push)});
  return actions;  // Else its owner hears, or has heard, of the worker's end.
}

ActorRouter::Actions ActorRouter::on_signal(Signal signal, NodeId from) {
  Actions actions;
  const bool is_call = signal.worker.value == 0;
  if (const NodeId node = is_call ? node_of(signal.actor) : node_of(signal.worker); !is_here(node)) {
    if (!is_here(from)) return actions;
    const auto owner = signal.owner;
    actions.push_back(Forward{node, std::move(signal), owner});
    return actions;
  }
  if (!is_call) {
    const auto* const lent = lending_.lent(signal.worker);
    if (lent != nullptr && lent->owner == Lending::Owner{signal.owner, from})
      actions.push_back(Send{worker_peer(signal.worker), std::move(signal)});
    return actions;
  }
  const auto actor = actors_.find(signal.actor);
  if (signal.kind == Signal::Kind::taken) {
    if (actor != actors_.end() && takes_calls(actor->second))
      actions.push_back(Send{worker_peer(actor->second.worker), std::move(signal)});
    return actions;
  }
  const auto is_it = [&](const Call& call) { return call.task == signal.task && call.owner == signal.owner; };
  if (actor == actors_.end()) {  // Not yet; else its owner hears, or has heard, of its end.
    if (!early_.forget([&](const auto& early) { return is_it(early.call); })) return actions;
  } else {
    auto& queue = actor->second.queue;
    const auto waits = std::find_if(queue.begin(), queue.end(), is_it);
    if (waits == queue.end()) {
      actions.push_back(Send{worker_peer(actor->second.worker), std::move(signal)});
      return actions;
    }
    queue.erase(waits);
    (void)end_call(signal.task);
  }
  answer(actions, signal.owner, from,
         {signal.task,
          {},
          fail(ErrorKind::cancelled, "call " + to_string(signal.task) + " was cancelled before it began")});
  return actions;
}

ActorRouter::Actions ActorRouter::on_loan(Loan loan) {
  Actions actions;
  const Lending::Owner owner{loan.owner, options_.node};
  if (!executables_.contains(owner.name)) return actions;  // It has ended, and that node has been told.
  if (loan.kind == Loan::Kind::lent)
    lending_.on_lent_elsewhere(owner, root_of(owner.name, options_.node), loan.shape, loan.worker);
  if (loan.kind == Loan::Kind::gone) (void)lending_.on_gone_elsewhere(loan.worker);
  actions.push_back(Send{owner.name, std::move(loan)});
  dispatch(actions);
  return actions;
}

ActorRouter::Actions ActorRouter::on_node(NodeId node, const Capacity& has) {
  Actions actions;
  if (is_here(node)) return actions;
  lending_.on_node(node, has);
  dispatch(actions);
  return actions;
}

ActorRouter::Actions ActorRouter::on_worker_gone(WorkerId worker, const std::string& how, const std::string& log) {
  Actions actions;
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return actions;
  const auto gone = std::move(found->second);
  workers_.erase(found);
  if (gone.actor.value != 0) {
    const auto actor = actors_.find(gone.actor);
    if (actor != actors_.end() && !restart(actions, actor->second, worker, how, log)) {
      auto restarted = actor->second.restarts > 0 ? ", restarted " + times(actor->second.restarts) : std::string();
      if (actor->second.deaths_before_ready > kDeathsBeforeReadyMax)
        restarted += ", the last " + times(kDeathsBeforeReadyMax) + " without coming through its constructor";
      const auto ended = actor->second.leaving
                             ? " has ended: it has called paceline::exit(), and did not come through its destructor: "
                             : " is dead" + restarted + ": ";
      end_actor(actions, gone.actor,
                began({ErrorKind::disconnected, describe(actor->second) + ended + short_name(worker) + " " + how},
                      place_of(worker, log), describe(actor->second), how),
                true);
    }
  } else if (const auto lent = lending_.on_worker_gone(worker)) {
    tell_gone(actions, *lent, worker,
              began({ErrorKind::disconnected, "the task's " + short_name(worker) + " " + how}, place_of(worker, log),
                    {}, how));
  } else if (!gone.ready) {  // It never came up; neither would the next one.
    for (const auto& wanted : lending_.give_up(gone.root))
      refuse_loan(actions, wanted, {ErrorKind::infeasible, "a worker for tasks could not be started: it " + how});
  }
  on_borrower_gone(actions, {worker_peer(worker), options_.node}, gone.root);
  auto more = on_owner_gone(worker_peer(worker));
  std::move(more.begin(), more.end(), std::back_inserter(actions));
  end_root_if_unused(actions, gone.root);
  dispatch(actions);
  return actions;
}

ActorRouter::Actions ActorRouter::end_worker(WorkerId worker, const std::string& why) {
  Actions actions;
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return actions;
  if (const auto actor = actors_.find(found->second.actor); actor != actors_.end())
    end_living(actions, actor->second, {ErrorKind::cancelled, describe(actor->second) + " has ended: " + why}, true,
               why);
  kill(actions, worker, why);
  return actions;
}

ActorRouter::Actions ActorRouter::on_waits(WorkerId worker, std::optional<Awaited> awaited) {
  Actions actions;
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return actions;
  lending_.on_waits(worker, awaited.has_value());
  found->second.waits = awaited;
  found->second.waits_since = now_;
  if (awaited) break_circle(actions, circle_through(worker));
  dispatch(actions);
  return actions;
}

/// The worker of this node that is to answer it; 0: none yet.
WorkerId ActorRouter::answerer_of(const Awaited& awaited) const {
  if (const auto call = in_flight_.find(awaited.task); call != in_flight_.end()) return worker_of(call->second.actor);
  if (awaited.actor.value != 0) return worker_of(awaited.actor);
  const auto runs_it = [&](const auto& entry) {
    return entry.second.waits && entry.second.waits->within == awaited.task;
  };
  const auto runner = std::find_if(workers_.begin(), workers_.end(), runs_it);
  return runner == workers_.end() ? WorkerId{} : runner->first;
}

/// Those that wait for each other, each for the next one, beginning with `worker`; empty: it does not wait for itself.
std::vector<WorkerId> ActorRouter::circle_through(WorkerId worker) const {
  std::vector<WorkerId> circle;
  WorkerId at = worker;
  do {
    const auto found = workers_.find(at);
    if (found == workers_.end() || !found->second.waits || found->second.waits->task.value == 0) return {};
    circle.push_back(at);
    at = answerer_of(*found->second.waits);
  } while (at != worker && circle.size() <= workers_.size());
  return at == worker ? circle : std::vector<WorkerId>{};
}

void ActorRouter::break_circle(Actions& actions, const std::vector<WorkerId>& circle) {
  if (circle.empty()) return;
  std::string names = workers_.at(circle.front()).name;
  for (const WorkerId worker : circle)
    names += " waits for " + workers_.at(answerer_of(*workers_.at(worker).waits)).name;
  const Error error{ErrorKind::invalid, "calls that would wait for each other for ever: " + names};
  for (const WorkerId worker : circle) {
    const auto task = workers_.at(worker).waits->task;
    if (const auto call = end_call(task)) {
      answer(actions, call->owner, call->origin, {task, {}, tl::unexpected(error)});
    } else {  // It is a task, or went past this agent.
      answer(actions, worker_peer(worker), options_.node, {task, {}, tl::unexpected(error)});
    }
  }
}

ActorRouter::Actions ActorRouter::on_release(const std::string& owner, const Release& release, NodeId from) {
  Actions actions;
  for (auto id : release.actors) {
    if (const auto claims = claiming_.find(id); claims != claiming_.end() && claims->second.create.owner == owner)
      claiming_.erase(claims);  // Where the name is granted none the less it is given back.
    if (const auto remote = remote_.find(id); remote != remote_.end() && remote->second.owner == owner) {
      note_ending(remote->second, id);
      actions.push_back(Forward{node_of(id), Release{{id}, release.owner_died}, owner});
      remote_.erase(remote);
    }
    const auto actor = actors_.find(id);
    if (actor == actors_.end() || actor->second.create.owner != owner || actor->second.origin != from) continue;
    const auto error =
        release.owner_died
            ? Error{ErrorKind::disconnected, describe(actor->second) + " has ended: owner died: " + owner}
            : Error{ErrorKind::cancelled, describe(actor->second) + " has ended: its last handle is gone"};
    end_living(actions, actor->second, error, false);
  }
  return actions;
}

ActorRouter::Actions ActorRouter::on_owner_gone(const std::string& owner) {
  Actions actions;
  if (const auto worker = workers_.find(worker_named(owner).value_or(WorkerId{})); worker != workers_.end())
    worker->second.cut_off = true;
  std::vector<ActorId> owned;
  for (const auto& [id, actor] : actors_) {
    if (actor.create.owner == owner && is_here(actor.origin)) owned.push_back(id);
  }
  for (const auto& [id, claims] : claiming_) {
    if (claims.create.owner == owner) owned.push_back(id);
  }
  for (const auto& [id, remote] : remote_) {
    if (remote.owner == owner) owned.push_back(id);
  }
  (void)early_.forget([&](const auto& early) { return early.call.owner == owner && is_here(early.from); });
  actions = on_release(owner, Release{owned, true}, options_.node);
  const auto root = root_of(owner, options_.node);
  on_borrower_gone(actions, {owner, options_.node}, root);
  owners_here_.erase(owner);
  end_root_if_unused(actions, owner);
  executables_.erase(owner);
  dispatch(actions);
  return actions;
}

/// What was lent to it ends: nobody can say what it does.
void ActorRouter::on_borrower_gone(Actions& actions, const Lending::Owner& owner, const std::string& root) {
  for (const WorkerId worker : lending_.on_owner_gone(owner)) kill(actions, worker);
  const auto asked = asked_.find(root);
  if (!is_here(owner.node) || asked == asked_.end()) return;
  for (const NodeId node : asked->second) {
    Wants word;
    word.owner = owner.name;
    word.root = root;
    word.gone = true;
    actions.push_back(Forward{node, std::move(word), owner.name});
  }
  if (owner.name == root) asked_.erase(asked);
}

/// A root that neither is connected here nor has actors here needs no workers for tasks.
void ActorRouter::end_root_if_unused(Actions& actions, const std::string& root) {
  if (owners_here_.contains(root)) return;
  for (const auto& [id, actor] : actors_) {
    if (actor.root == root) return;
  }
  for (const auto& owner : lending_.owners_of(root)) {
    if (!is_here(owner.node)) return;
  }
  std::vector<WorkerId> workers;
  for (const auto& [id, worker] : workers_) {
    if (worker.root == root && worker.actor.value == 0) workers.push_back(id);
  }
  for (auto worker : workers) kill(actions, worker);
  const auto is_of_root = [&](const auto& entry) { return entry.second.root == root; };
  if (root.starts_with(kDetached) && std::none_of(workers_.begin(), workers_.end(), is_of_root)) asked_.erase(root);
}

bool ActorRouter::owns_actors_on(NodeId node) const {
  if (called_.contains(node)) return true;
  const auto first = remote_.lower_bound(actor_id(node, 0, 0));
  return (first != remote_.end() && node_of(first->first) == node) || !lending_.lent_elsewhere(node).empty();
}

void ActorRouter::on_driver_moved(const std::string& driver, NodeId to) {
  const auto move = [&](Executable& executable) {
    if (executable.driver == driver) executable.driver_node = to;
  };
  for (auto& [owner, executable] : executables_) move(executable);
  for (auto& [id, worker] : workers_) move(worker.output);
  for (auto& [id, actor] : actors_) move(actor.executable);
}

ActorRouter::Actions ActorRouter::on_job_closed(JobId job) {
  Actions actions;
  std::vector<ActorId> its;
  for (const auto& [id, actor] : actors_)
    if (actor.create.job == job && actor.outlives) its.push_back(id);
  for (const ActorId id : its) {
    const Actor& actor = actors_.at(id);
    end_living(actions, actor, {ErrorKind::cancelled, describe(actor) + " has ended: its job is over"}, true);
  }
  return actions;
}

ActorRouter::Actions ActorRouter::on_node_gone(NodeId node, const std::string& how, const std::set<JobId>& jobs) {
  Actions actions;
  const auto reason = began({ErrorKind::disconnected, "node " + to_string(node) + " is gone: " + how}, {node.value}, {},
                            "its node is gone: " + how);
  std::vector<ActorReady> dead;
  for (const auto& [id, remote] : remote_) {
    if (node_of(id) == node) dead.push_back({id, remote.owner, true, reason});
  }
  for (auto& ready : dead) {
    auto more = on_actor_ready(std::move(ready));
    std::move(more.begin(), more.end(), std::back_inserter(actions));
  }
  std::erase_if(in_flight_, [&](const auto& entry) {
    if (entry.second.target != node) return false;
    answer(actions, entry.second.owner, entry.second.origin, {entry.first, {}, tl::unexpected(reason)});
    return true;
  });
  for (const auto& [worker, lent] : lending_.lent_elsewhere(node)) tell_gone(actions, lent, worker, reason);
  lending_.on_node(node, std::nullopt);
  called_.erase(node);
  (void)early_.forget([&](const auto& early) { return early.from == node; });
  std::erase_if(ending_, [&](const auto& entry) { return node_of(entry.second) == node; });
  // What its peers owned here ends.
  for (const auto& owner : lending_.owners_on(node)) on_borrower_gone(actions, owner, {});
  std::vector<std::pair<std::string, ActorId>> orphans;
  for (auto& [id, actor] : actors_) {
    if (actor.origin != node) continue;
    if (jobs.contains(actor.create.job)) {
      actor.outlives = true;
      orphans_.try_emplace(id, now_ + options_.owner_patience);  // It may be said again.
    } else {
      orphans.emplace_back(actor.create.owner, id);
    }
  }
  for (const auto& [id, claims] : claiming_) {
    if (claims.origin == node) orphans.emplace_back(claims.create.owner, id);
  }
  for (const auto& [owner, id] : orphans) {
    auto more = on_release(owner, Release{{id}, true}, node);
    std::move(more.begin(), more.end(), std::back_inserter(actions));
  }
  return actions;
}

void ActorRouter::dispatch(Actions& actions) {
  while (auto decision = lending_.next()) {
    if (const auto* lend = std::get_if<Lending::Lend>(&*decision)) {
      Loan loan;
      loan.shape = lend->shape;
      loan.worker = lend->worker;
      tell_borrower(actions, lend->owner, std::move(loan));
    } else if (const auto* recall = std::get_if<Lending::Recall>(&*decision)) {
      Loan loan;
      loan.kind = Loan::Kind::recalled;
      loan.shape = recall->shape;
      loan.worker = worker_id(options_.node, 0);
      loan.count = 1;
      tell_borrower(actions, recall->owner, std::move(loan));
    } else if (const auto* start = std::get_if<Lending::Start>(&*decision)) {
      // Workers for tasks are the root's; a root of another node has said there how they are started.
      const auto* const executable = executable_of(start->root, start->owner.name);
      if (!executable) {
        for (const auto& wanted : lending_.give_up(start->root))
          refuse_loan(actions, wanted, {ErrorKind::invalid, start->root + kUnsaid});
        continue;
      }
      lending_.on_started(start_worker(actions, *executable, start->root, ActorId{}, "tasks", "tasks"), start->root);
    } else {
      const auto& ask = std::get<Lending::Ask>(*decision);
      Wants word;
      word.shape = ask.shape;
      word.workers = ask.workers;
      word.owner = ask.owner;
      word.root = root_of(ask.owner, options_.node);
      if (const auto* const executable = executable_of(word.root, ask.owner)) word.executable = *executable;
      asked_[word.root].insert(ask.node);
      actions.push_back(Forward{ask.node, std::move(word), ask.owner});
    }
  }
}

WorkerId ActorRouter::worker_of(ActorId actor) const {
  const auto found = actors_.find(actor);
  return found == actors_.end() ? WorkerId{} : found->second.worker;
}

ActorId ActorRouter::restartable_of(WorkerId worker) const {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return {};
  const auto actor = actors_.find(found->second.actor);
  return actor != actors_.end() && actor->second.worker == worker && actor->second.restartable() ? actor->first
                                                                                                 : ActorId{};
}

Result<ActorRouter::LineTo> ActorRouter::line_to(ActorId actor) const {
  if (!is_here(node_of(actor))) return LineTo{};
  if (const auto found = actors_.find(actor); found != actors_.end()) {
    return LineTo{takes_calls(found->second) ? found->second.worker : WorkerId{}, found->second.create.rule,
                  found->second.restarts, found->second.ended};
  }
  if (const auto dead = dead_.find(actor); dead != dead_.end()) return tl::unexpected(dead->second);
  return tl::unexpected(unknown(actor));
}

}  // namespace paceline::actors
