#include "actors/router/task_table.h"

#include <set>
#include <utility>

#include "runtime/base/check.h"

namespace paceline::actors {
namespace {

std::set<TaskId> sources_of(const Call& call) {
  std::set<TaskId> sources;
  for (const auto& argument : call.arguments) {
    if (const auto* source = std::get_if<TaskId>(&argument)) sources.insert(*source);
  }
  return sources;
}

}  // namespace

Result<void> TaskTable::add(TaskRecord task) {
  const auto id = task.call.task;
  const auto sources = sources_of(task.call);
  for (auto source : sources) {
    const auto entry = entries_.find(source);
    const bool kept =
        entry != entries_.end() && (entry->second.record || entry->second.value || graph_.error(source) != nullptr);
    if (!kept) {
      return fail(ErrorKind::overloaded,
                  "the result of task " + to_string(source) + ", an argument, is not kept any more (at most " +
                      std::to_string(options_.kept_bytes_max >> 20) + " MiB are): pass its value");
    }
    if (const auto* error = graph_.error(source)) return fail(error->kind, "an argument failed: " + error->text);
  }
  scheduler::TaskGraph::Task node;
  node.id = id;
  node.dependencies.assign(sources.begin(), sources.end());
  node.cpus = task.call.resources.cpus;
  if (auto added = graph_.add(node); !added) return tl::unexpected(std::move(added).error());
  for (auto source : sources) ++entries_.at(source).users;
  auto root = task.root;
  entries_[id] = Entry{std::move(task), std::nullopt, std::move(root), 0, false};
  return {};
}

const TaskRecord& TaskTable::take(TaskId id) {
  PACELINE_CHECK(graph_.lease(id).has_value(), "only a ready task begins to run");
  auto& record = *entries_.at(id).record;
  const auto sources = sources_of(record.call);
  for (auto& argument : record.call.arguments) {
    if (const auto* source = std::get_if<TaskId>(&argument)) argument = Bytes(*entries_.at(*source).value);
  }
  for (auto source : sources) {
    const auto entry = entries_.find(source);
    --entry->second.users;
    forget_if_unused(entry);
  }
  ++record.attempts;
  return record;
}

bool TaskTable::put_back(TaskId id) {
  const auto* record = find(id);
  return record != nullptr && record->attempts <= record->call.resources.retries && graph_.give_back(id).has_value();
}

const TaskRecord* TaskTable::find(TaskId id) const {
  const auto entry = entries_.find(id);
  return entry == entries_.end() || !entry->second.record ? nullptr : &*entry->second.record;
}

std::vector<TaskTable::Finished> TaskTable::finish(TaskId id, Result<Bytes> value) {
  const auto entry = entries_.find(id);
  if (entry == entries_.end() || !entry->second.record) return {};
  if (entry->second.record->attempts > 0) (void)graph_.lease(id);  // Stale where it runs.
  Result<scheduler::TaskGraph::Changes> changes;
  if (graph_.state(id) != scheduler::TaskState::leased) {
    PACELINE_CHECK(!value.has_value(), "a task that did not run has no result");
    changes = graph_.cancel(id);
  } else if (!value) {
    changes = graph_.on_failed(id, {value.error().kind, "an argument failed: " + value.error().text});
  } else if (value->size() <= options_.argument_bytes_max && kept_bytes_ + value->size() <= options_.kept_bytes_max) {
    entry->second.value = *value;
    kept_bytes_ += value->size();
    changes = graph_.on_done(id);
  } else if (entry->second.users == 0) {
    changes = graph_.on_done(id);  // The owner gets it; a later task that names it does not.
  } else {
    changes = graph_.on_failed(
        id, {ErrorKind::overloaded,
             "a result of " + std::to_string(value->size()) + " bytes that is an argument does not fit: a node keeps " +
                 std::to_string(options_.kept_bytes_max >> 20) + " MiB for tasks, at most " +
                 std::to_string(options_.argument_bytes_max >> 20) + " MiB of one: drop futures or pass less"});
  }
  PACELINE_CHECK(changes.has_value(), "the task was not over");
  std::vector<Finished> finished;
  const auto end = [&](std::map<TaskId, Entry>::iterator over, Result<Bytes> result) {
    drop_sources(*over->second.record);
    finished.push_back({*std::move(over->second.record), std::move(result)});
    over->second.record.reset();
  };
  end(entry, std::move(value));
  for (auto dependant : changes->failed) end(entries_.find(dependant), tl::unexpected(*graph_.error(dependant)));
  for (const auto& one : finished) forget_if_unused(entries_.find(one.task.call.task));
  return finished;
}

void TaskTable::drop_sources(const TaskRecord& task) {
  for (auto source : sources_of(task.call)) {
    const auto entry = entries_.find(source);
    --entry->second.users;
    forget_if_unused(entry);
  }
}

void TaskTable::forget_if_unused(std::map<TaskId, Entry>::iterator entry) {
  if (entry == entries_.end() || entry->second.record || !entry->second.released || entry->second.users > 0) return;
  if (entry->second.value) kept_bytes_ -= entry->second.value->size();
  (void)graph_.forget(entry->first);
  entries_.erase(entry);
}

void TaskTable::release(TaskId task) {
  const auto entry = entries_.find(task);
  if (entry == entries_.end()) return;
  entry->second.released = true;
  forget_if_unused(entry);
}

std::vector<TaskId> TaskTable::unfinished_of(const std::string& root) const {
  std::vector<TaskId> tasks;
  for (const auto& [id, entry] : entries_) {
    if (entry.record && entry.root == root) tasks.push_back(id);
  }
  return tasks;
}

void TaskTable::release_all_of(const std::string& root) {
  std::vector<TaskId> tasks;
  for (const auto& [id, entry] : entries_) {
    if (entry.root == root) tasks.push_back(id);
  }
  for (auto task : tasks) release(task);
}

}  // namespace paceline::actors
