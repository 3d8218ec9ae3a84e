#include "actors/router/loans.h"

#include <utility>

#include "actors/causes.h"

namespace paceline::actors::router {

void Loans::on_wants(const Wants& wants, NodeId from) {
  const Lending::Owner owner{wants.owner, from};
  const auto root = here_.is(from) ? workers_.root_of(wants.owner, from) : wants.root;
  if (wants.gone) {
    on_owner_gone(owner, root);
    if (!here_.is(from)) workers_.on_owner_gone(wants.owner, from);
    end_root_if_unused(root);
    return dispatch();
  }
  if (!here_.is(from) && !wants.executable.path.empty()) workers_.on_executable(wants.owner, wants.executable, from);
  for (const auto* list : {&wants.returned, &wants.broken}) {
    for (const WorkerId worker : *list) {
      const bool its_own = is_lent_to(worker, owner);
      if (const auto there = lending_.on_returned(owner, worker)) {
        Wants word;
        word.shape = there->shape;
        word.workers = there->workers;
        (list == &wants.returned ? word.returned : word.broken).push_back(worker);
        word.owner = wants.owner;
        word.root = root;
        here_.act(Forward{there->node, std::move(word), wants.owner});
      } else if (list == &wants.broken && its_own) {
        workers_.kill(worker);
      }
    }
  }
  workers_.note_owner(wants.owner, from);
  if (const auto wanted = lending_.on_wants(owner, root, wants.shape, wants.workers); !wanted)
    refuse({owner, wants.shape}, wanted.error());
  dispatch();
}

void Loans::on_loan(Loan loan) {
  const Lending::Owner owner{loan.owner, here_.options.node};
  if (!workers_.knows(owner.name)) return;  // It has ended, and that node has been told.
  if (loan.kind == Loan::Kind::lent)
    lending_.on_lent_elsewhere(owner, workers_.root_of(owner.name, owner.node), loan.shape, loan.worker);
  if (loan.kind == Loan::Kind::gone) (void)lending_.on_gone_elsewhere(loan.worker);
  here_.tell(owner.name, owner.node, std::move(loan));
  dispatch();
}

bool Loans::is_lent_to(WorkerId worker, const Lending::Owner& owner) const {
  const auto* const lent = lending_.lent(worker);
  return lent != nullptr && lent->owner == owner;
}

void Loans::on_push(PushTask push, NodeId from) {
  if (const NodeId node = node_of(push.worker); !here_.is(node)) {
    const auto owner = push.owner;
    if (here_.is(from)) here_.act(Forward{node, std::move(push), owner});
  } else if (is_lent_to(push.worker, {push.owner, from})) {
    here_.act(Send{worker_peer(push.worker), std::move(push)});
  }  // Else its owner hears, or has heard, of the worker's end.
}

void Loans::on_signal(Signal signal, NodeId from) {
  if (is_lent_to(signal.worker, {signal.owner, from})) here_.act(Send{worker_peer(signal.worker), std::move(signal)});
}

void Loans::on_result(CallResult result, const std::string& from) {
  const auto worker = worker_named(from);
  const auto* const lent = worker ? lending_.lent(*worker) : nullptr;
  const auto owner = result.owner;
  if (lent && lent->owner.name == owner) {
    here_.tell(owner, lent->owner.node, std::move(result));
  } else if (!worker) {
    here_.tell(owner, here_.options.node, std::move(result));
  }
}

void Loans::refuse(const Lending::Lent& wanted, Error error) const {
  Loan loan;
  loan.kind = Loan::Kind::refused;
  loan.shape = wanted.shape;
  loan.error = std::move(error);
  here_.tell(wanted.owner.name, wanted.owner.node, std::move(loan));
}

void Loans::give_up(const std::string& root, const Error& error) {
  for (const auto& wanted : lending_.give_up(root)) refuse(wanted, error);
}

void Loans::tell_gone(const Lending::Lent& lent, WorkerId worker, Error reason) const {
  Loan loan;
  loan.kind = Loan::Kind::gone;
  loan.shape = lent.shape;
  loan.worker = worker;
  loan.error = std::move(reason);
  here_.tell(lent.owner.name, lent.owner.node, std::move(loan));
}

void Loans::on_worker_gone(WorkerId worker, const LocalWorkers::Worker& gone, const std::string& how,
                           const std::string& log) {
  if (const auto lent = lending_.on_worker_gone(worker)) {
    const Error error{ErrorKind::disconnected, "the task's " + to_string(place_of(worker)) + " " + how};
    tell_gone(*lent, worker, began(error, place_of(worker, log), {}, how));
  } else if (!gone.ready) {  // It never came up; neither would the next one.
    give_up(gone.root, {ErrorKind::infeasible, "a worker for tasks could not be started: it " + how});
  }
}

void Loans::on_worker_ready(WorkerId worker) {
  lending_.on_ready(worker);
  dispatch();
}

void Loans::on_node(NodeId node, const Capacity& has) {
  lending_.on_node(node, has);
  dispatch();
}

void Loans::on_node_lost(NodeId node, const Error& reason) {
  for (const auto& [worker, lent] : lending_.lent_elsewhere(node)) tell_gone(lent, worker, reason);
  lending_.on_node(node, std::nullopt);
  for (const auto& owner : lending_.owners_on(node)) on_owner_gone(owner, {});
}

void Loans::on_owner_gone(const Lending::Owner& owner, const std::string& root) {
  for (const WorkerId worker : lending_.on_owner_gone(owner)) workers_.kill(worker);
  const auto asked = asked_.find(root);
  if (!here_.is(owner.node) || asked == asked_.end()) return;
  for (const NodeId node : asked->second) {
    Wants word;
    word.owner = owner.name;
    word.root = root;
    word.gone = true;
    here_.act(Forward{node, std::move(word), owner.name});
  }
  if (owner.name == root) asked_.erase(asked);
}

/// Owners of other nodes may still have tasks for it.
void Loans::end_root_if_unused(const std::string& root) {
  if (workers_.is_used(root)) return;
  for (const auto& owner : lending_.owners_of(root))
    if (!here_.is(owner.node)) return;
  workers_.kill_tasks_of(root);
  if (root.starts_with(kDetached) && !workers_.has_any_of(root)) asked_.erase(root);
}

void Loans::dispatch() {
  while (auto decision = lending_.next()) {
    if (const auto* lend = std::get_if<Lending::Lend>(&*decision)) {
      Loan loan;
      loan.shape = lend->shape;
      loan.worker = lend->worker;
      here_.tell(lend->owner.name, lend->owner.node, std::move(loan));
    } else if (const auto* recall = std::get_if<Lending::Recall>(&*decision)) {
      Loan loan;
      loan.kind = Loan::Kind::recalled;
      loan.shape = recall->shape;
      loan.worker = worker_id(here_.options.node, 0);
      loan.count = 1;
      here_.tell(recall->owner.name, recall->owner.node, std::move(loan));
    } else if (const auto* start = std::get_if<Lending::Start>(&*decision)) {
      // Workers for tasks are the root's; a root of another node has said there how they are started.
      const auto* const executable = workers_.executable_of(start->root, start->owner.name);
      if (executable) {
        const auto worker = workers_.start({{}, *executable, start->root, "tasks"}, ActorId{}, "tasks");
        lending_.on_started(worker, start->root);
      } else {
        give_up(start->root, {ErrorKind::invalid, start->root + kUnsaid});
      }
    } else {
      const auto& ask = std::get<Lending::Ask>(*decision);
      Wants word;
      word.shape = ask.shape;
      word.workers = ask.workers;
      word.owner = ask.owner;
      word.root = workers_.root_of(ask.owner, here_.options.node);
      if (const auto* const executable = workers_.executable_of(word.root, ask.owner)) word.executable = *executable;
      asked_[word.root].insert(ask.node);
      here_.act(Forward{ask.node, std::move(word), ask.owner});
    }
  }
}

void Loans::tick() {
  for (const auto& want : lending_.take_starving(here_.now)) {
    Warn warn;
    warn.text = lending_.why_none(want, here_.now);
    if (const auto* const executable = workers_.executable_of(want.owner.name, want.root)) {
      warn.driver = executable->driver;
      warn.node = executable->driver_node;
    }
    here_.act(std::move(warn));
  }
}

void Loans::add_to(WorkerView& view) const {
  const auto* const lent = lending_.lent(view.worker);
  if (!lent) return;
  view.lent = *lent;
  view.lent_since = lending_.lent_since(view.worker).value_or(here_.now);
}

}  // namespace paceline::actors::router
