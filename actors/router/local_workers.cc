#include "actors/router/local_workers.h"

#include <algorithm>
#include <utility>

namespace paceline::actors::router {
namespace {

void set_output(Executable& executable, const Executable& from) {
  executable.logs = from.logs;
  executable.logs_if_printed = from.logs_if_printed;
  executable.driver = from.driver;
  executable.driver_node = from.driver_node;
}

}  // namespace

void move_output(Executable& executable, const std::string& driver, NodeId to) {
  if (executable.driver == driver) executable.driver_node = to;
}

void LocalWorkers::on_executable(const std::string& owner, Executable executable, NodeId from) {
  if (const auto id = worker_named(owner); id && here_.is(from)) {
    const auto* const worker = find(*id);
    set_output(executable, worker ? worker->output : Executable{});
  } else if (here_.is(from) && !executable.driver.empty()) {
    executable.driver = owner;
    executable.driver_node = from;
  }
  executables_.insert_or_assign(owner, std::move(executable));
}

const Executable* LocalWorkers::executable_of(const std::string& owner, const std::string& otherwise) const {
  auto known = executables_.find(owner);
  if (known == executables_.end()) known = executables_.find(otherwise);
  return known == executables_.end() ? nullptr : &known->second;
}

std::string LocalWorkers::root_of(const std::string& owner, NodeId from) const {
  const auto id = worker_named(owner);
  const auto* const worker = here_.is(from) && id ? find(*id) : nullptr;
  return worker ? worker->root : owner;
}

void LocalWorkers::note_owner(const std::string& owner, NodeId from) {
  if (here_.is(from) && root_of(owner, from) == owner) connected_.insert(owner);
}

void LocalWorkers::on_owner_gone(const std::string& owner, NodeId from) {
  if (here_.is(from)) connected_.erase(owner);
  executables_.erase(owner);
}

void LocalWorkers::on_driver_moved(const std::string& driver, NodeId to) {
  for (auto& [owner, executable] : executables_) move_output(executable, driver, to);
  for (auto& [id, worker] : workers_) move_output(worker.output, driver, to);
}

WorkerId LocalWorkers::start(Fork fork, ActorId actor, std::string name) {
  fork.worker = worker_id(here_.options.node, next_++);
  Worker& added = workers_.emplace(fork.worker, Worker{fork.root, std::move(name), actor, here_.now}).first->second;
  set_output(added.output, fork.executable);
  if (actor.value != 0) of_actors_.insert_or_assign(actor, fork.worker);
  const WorkerId id = fork.worker;
  here_.act(std::move(fork));
  return id;
}

void LocalWorkers::kill(WorkerId id, const std::string& why) {
  auto* const worker = find(id);
  if (!worker || std::exchange(worker->ending, true)) return;
  if (of_actor(worker->actor) == id) of_actors_.erase(worker->actor);
  here_.act(Kill{id, why});
}

LocalWorkers::Worker* LocalWorkers::find(WorkerId id) {
  const auto worker = workers_.find(id);
  return worker == workers_.end() ? nullptr : &worker->second;
}

const LocalWorkers::Worker* LocalWorkers::find(WorkerId id) const {
  const auto worker = workers_.find(id);
  return worker == workers_.end() ? nullptr : &worker->second;
}

std::optional<LocalWorkers::Worker> LocalWorkers::take(WorkerId id) {
  auto worker = workers_.extract(id);
  if (worker.empty()) return std::nullopt;
  if (of_actor(worker.mapped().actor) == id) of_actors_.erase(worker.mapped().actor);
  return std::move(worker.mapped());
}

WorkerId LocalWorkers::of_actor(ActorId actor) const {
  const auto worker = of_actors_.find(actor);
  return worker == of_actors_.end() ? WorkerId{} : worker->second;
}

bool LocalWorkers::takes_calls(ActorId actor) const {
  const auto* const worker = find(of_actor(actor));
  return worker && worker->takes_calls();
}

bool LocalWorkers::is_used(const std::string& root) const {
  return connected_.contains(root) || std::any_of(of_actors_.begin(), of_actors_.end(), [&](const auto& entry) {
           return workers_.at(entry.second).root == root;
         });
}

void LocalWorkers::kill_tasks_of(const std::string& root) {
  std::vector<WorkerId> its;
  for (const auto& [id, worker] : workers_)
    if (worker.root == root && worker.actor.value == 0) its.push_back(id);
  for (const WorkerId id : its) kill(id);
}

bool LocalWorkers::has_any_of(const std::string& root) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& entry) { return entry.second.root == root; });
}

std::vector<WorkerView> LocalWorkers::views() const {
  std::vector<WorkerView> views;
  for (const auto& [id, worker] : workers_) {
    auto& view = views.emplace_back();
    view.worker = id;
    view.root = worker.root;
    view.name = worker.name;
    view.actor = worker.actor;
    view.ready = worker.ready;
    view.ending = worker.ending;
    view.started = worker.started;
  }
  return views;
}

}  // namespace paceline::actors::router
