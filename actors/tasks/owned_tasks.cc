#include "actors/tasks/owned_tasks.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/base/check.h"

namespace paceline::actors {

std::uint32_t OwnedTasks::pool_of(const Shape& shape) {
  const auto known = std::find_if(pools_.begin(), pools_.end(), [&](const auto& pool) { return pool->shape == shape; });
  if (known != pools_.end()) return static_cast<std::uint32_t>(known - pools_.begin());
  const auto unused = std::find_if(pools_.begin(), pools_.end(), [](const auto& pool) { return pool->is_unused(); });
  if (unused == pools_.end()) {
    pools_.push_back(std::make_unique<Pool>(Pool{shape}));
    return static_cast<std::uint32_t>(pools_.size() - 1);
  }
  **unused = Pool{shape};
  return static_cast<std::uint32_t>(unused - pools_.begin());
}

void OwnedTasks::add(TaskId task, const Shape& shape, Retries retries, Frame call, PendingResultPtr result) {
  const auto pool = pool_of(shape);
  bytes_ += call.size();
  Task& entry = tasks_[task];
  entry.call = std::move(call);
  entry.result = std::move(result);
  entry.retries = retries.times;
  entry.after_errors = retries.after_errors;
  entry.pool = pool;
  pools_[pool]->queue.push_back(task);
}

std::size_t OwnedTasks::depth(const Pool& pool) const {
  if (pool.each <= Duration::zero()) return 1;
  return std::clamp<std::size_t>(static_cast<std::size_t>(options_.slice / pool.each), 1, options_.under_way_max);
}

/// Workers that are of use: those that are busy, and one for each slice of what is queued.
std::uint32_t OwnedTasks::need(const Pool& pool) const {
  std::size_t slices = pool.queue.size();
  if (pool.each > Duration::zero() && slices > 0)
    slices =
        std::min(slices, 1 + static_cast<std::size_t>(pool.each * static_cast<std::int64_t>(slices) / options_.slice));
  return static_cast<std::uint32_t>(std::min<std::size_t>(pool.busy + slices, options_.workers_max));
}

bool OwnedTasks::may_take(const Worker& worker, std::size_t depth, std::size_t bytes) const {
  if (worker.held_up || worker.leaving || worker.lost) return false;
  return worker.under_way.empty() || (worker.under_way.size() < depth && worker.by_line && goes_by_line(worker, bytes));
}

/// The worker with least to do of those that may take so large a task; null: none may.
std::pair<const WorkerId, OwnedTasks::Worker>* OwnedTasks::taker(Pool& pool, std::size_t bytes) const {
  const std::size_t most = depth(pool);
  std::pair<const WorkerId, Worker>* least = nullptr;
  for (auto& worker : pool.workers) {
    if (!may_take(worker.second, most, bytes)) continue;
    if (least == nullptr || worker.second.under_way.size() < least->second.under_way.size()) least = &worker;
    if (least->second.under_way.empty()) break;
  }
  return least;
}

/// The task is in no queue any more.
OwnedTasks::Push OwnedTasks::push(Pool& pool, TaskId id, std::pair<const WorkerId, Worker>& to) {
  auto& [number, worker] = to;
  auto& task = tasks_.at(id);
  pool.busy += worker.under_way.empty() ? 1 : 0;
  worker.under_way.push_back(id);
  worker.by_line = goes_by_line(worker, task.call.size());
  task.worker = number;
  return Push{number, id, task.call, worker.by_line};
}

std::optional<OwnedTasks::Push> OwnedTasks::next(Instant now) {
  leave_full_nodes(now);
  for (const auto& pool : pools_) {
    if (pool->queue.empty() || pool->workers.empty()) continue;
    const TaskId id = pool->queue.front();
    auto* const to = taker(*pool, tasks_.at(id).call.size());
    if (to == nullptr) continue;
    pool->queue.pop_front();
    note_taken(*pool, now);
    return push(*pool, id, *to);
  }
  for (const auto& pool : pools_) {
    if (!pool->shape.spread || !pool->queue.empty() || pool->workers.empty()) continue;
    if (auto theirs = next_of_others(*pool, now)) return theirs;
  }
  return std::nullopt;
}

/// Spread tasks, all of which are being run on this node: one that waits for the busy workers of another.
std::optional<OwnedTasks::Push> OwnedTasks::next_of_others(Pool& pool, Instant now) {
  Shape alike = pool.shape;
  for (const auto& other : pools_) {
    alike.node = other->shape.node;
    if (other->shape != alike || other->queue.empty() || other->workers.empty()) continue;
    const TaskId id = other->queue.back();
    auto& task = tasks_.at(id);
    auto* const to = taker(pool, task.call.size());
    if (to == nullptr || !to->second.under_way.empty()) continue;
    other->queue.pop_back();
    note_taken(*other, now);
    task.pool = pool_with_.at(to->first);
    return push(pool, id, *to);
  }
  return std::nullopt;
}

void OwnedTasks::note_taken(Pool& pool, Instant now) {
  if (pool.queue.empty()) pool.served_since = now;
  if (pool.shape.spread) pool.waits_since = now;
}

/// What is queued for this node may be run on any.
void OwnedTasks::leave_node(Pool& pool) {
  const auto queue = std::exchange(pool.queue, {});
  const auto any = pool_of({pool.shape.cpus, NodeId{-1}, pool.shape.memory, false});
  for (const TaskId task : queue) {
    tasks_.at(task).pool = any;
    pools_[any]->queue.push_back(task);
  }
  pool.waits_since.reset();
}

/// Spread tasks of which none has gone to a worker for long. Where the node has lent none at all, others for it do not
/// wait so long again for a while.
void OwnedTasks::leave_full_nodes(Instant now) {
  for (std::size_t i = 0; i < pools_.size(); ++i) {  // leave_node() may add one.
    Pool& pool = *pools_[i];
    if (!pool.shape.spread) continue;
    if (pool.queue.empty()) {
      pool.waits_since.reset();
      continue;
    }
    if (!pool.waits_since) pool.waits_since = now;
    const bool is_shunned = pool.workers.empty() && pool.shunned_until && now < *pool.shunned_until;
    if (!is_shunned && now < *pool.waits_since + options_.spread_patience) continue;
    if (!is_shunned && pool.workers.empty()) pool.shunned_until = now + options_.shunned_for;
    pool.served_since = now;
    leave_node(pool);
  }
}

/// Whether tasks wait for workers that another shape's could make room for.
bool OwnedTasks::is_in_use() const {
  return std::any_of(pools_.begin(), pools_.end(), [](const auto& pool) { return !pool->is_unused(); });
}

bool OwnedTasks::lacks_workers() const {
  return std::any_of(pools_.begin(), pools_.end(),
                     [this](const auto& pool) { return !pool->queue.empty() && pool->workers.size() < need(*pool); });
}

void OwnedTasks::take_off(Pool& pool, Worker& worker, TaskId task) {
  const auto at = std::find(worker.under_way.begin(), worker.under_way.end(), task);
  PACELINE_CHECK(at != worker.under_way.end(), "a task is under way to the worker that it names");
  worker.under_way.erase(at);
  if (worker.under_way.empty()) --pool.busy;
}

void OwnedTasks::queue_again(TaskId task, Task& entry) {
  if (entry.cancelled) return end_cancelled(task);
  entry.worker = WorkerId{};
  pools_[entry.pool]->queue.push_front(task);
}

void OwnedTasks::end_cancelled(TaskId task) {
  const auto entry = tasks_.extract(task);
  bytes_ -= entry.mapped().call.size();
  over_.push_back(std::move(entry.mapped().result));
}

std::optional<OwnedTasks::With> OwnedTasks::with(TaskId task) const {
  const auto found = tasks_.find(task);
  if (found == tasks_.end()) return std::nullopt;
  const Task& entry = found->second;
  if (entry.worker.value == 0) return With{};
  return With{entry.worker, pools_[entry.pool]->workers.at(entry.worker).by_line};
}

PendingResultPtr OwnedTasks::result_of(TaskId task) const {
  const auto found = tasks_.find(task);
  return found == tasks_.end() ? nullptr : found->second.result;
}

std::optional<OwnedTasks::With> OwnedTasks::cancel(TaskId task) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end()) return std::nullopt;
  Task& entry = found->second;
  entry.cancelled = true;
  Pool& pool = *pools_[entry.pool];
  if (entry.worker.value != 0) return with(task);
  pool.queue.erase(std::find(pool.queue.begin(), pool.queue.end(), task));
  end_cancelled(task);
  return With{};
}

void OwnedTasks::put_back(TaskId task) {
  auto& entry = tasks_.at(task);
  Pool& pool = *pools_[entry.pool];
  Worker& worker = pool.workers.at(entry.worker);
  take_off(pool, worker, task);
  worker.held_up = !worker.under_way.empty();
  queue_again(task, entry);
}

PendingResultPtr OwnedTasks::on_result(TaskId task, Duration ran, Instant now) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end() || found->second.worker.value == 0) return nullptr;
  Task& entry = found->second;
  note_answer(entry, task, ran);
  bytes_ -= entry.call.size();
  auto result = std::move(entry.result);
  Pool& pool = *pools_[entry.pool];
  const WorkerId id = entry.worker;
  tasks_.erase(found);
  if (pool.workers.at(id).under_way.empty()) leave_if_idle(pool, id, now);
  return result;
}

bool OwnedTasks::on_error(TaskId task, Duration ran, Instant now) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end() || found->second.worker.value == 0) return false;
  Task& entry = found->second;
  if (!entry.after_errors || entry.retries <= 0 || entry.cancelled) return false;
  --entry.retries;
  note_answer(entry, task, ran);
  Pool& pool = *pools_[entry.pool];
  const WorkerId id = entry.worker;
  queue_again(task, entry);
  if (pool.workers.at(id).under_way.empty()) leave_if_idle(pool, id, now);
  return true;
}

/// Its worker has done it, well or not.
void OwnedTasks::note_answer(Task& entry, TaskId task, Duration ran) {
  Pool& pool = *pools_[entry.pool];
  if (ran > Duration::zero()) pool.each = pool.each > Duration::zero() ? (pool.each * 7 + ran) / 8 : ran;
  Worker& worker = pool.workers.at(entry.worker);
  worker.held_up = false;
  take_off(pool, worker, task);
}

/// Has one asked back that is still busy: this one goes in its place.
void OwnedTasks::leave_if_idle(Pool& pool, WorkerId id, Instant now) {
  const auto worker = pool.workers.find(id);
  worker->second.idle_since = now;
  if (worker->second.lost) return;
  if (worker->second.leaving) return give_back(pool, worker);
  for (auto& [other, its] : pool.workers) {
    if (!its.leaving || node_of(other) != node_of(id)) continue;
    its.leaving = false;
    return give_back(pool, worker);
  }
}

void OwnedTasks::give_back(Pool& pool, std::map<WorkerId, Worker>::iterator worker) {
  pool.returned.push_back(worker->first);
  pool_with_.erase(worker->first);
  pool.workers.erase(worker);
}

void OwnedTasks::on_unbegun(TaskId task, Instant now) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end() || found->second.worker.value == 0) return;
  Pool& pool = *pools_[found->second.pool];
  const WorkerId id = found->second.worker;
  Worker& worker = pool.workers.at(id);
  take_off(pool, worker, task);
  worker.held_up = !worker.under_way.empty();
  queue_again(task, found->second);
  if (worker.under_way.empty()) leave_if_idle(pool, id, now);
}

void OwnedTasks::on_lent(WorkerId worker, const Shape& shape, bool line, Instant now) {
  const auto index = pool_of(shape);
  if (!pool_with_.emplace(worker, index).second) return;
  Pool& pool = *pools_[index];
  Worker one;
  one.line = line;
  one.idle_since = now;
  pool.workers.emplace(worker, std::move(one));
}

void OwnedTasks::on_recalled(const Shape& shape, NodeId node, std::uint32_t count) {
  Pool& pool = *pools_[pool_of(shape)];
  for (; count > 0; --count) {
    auto least = pool.workers.end();
    for (auto one = pool.workers.begin(); one != pool.workers.end(); ++one) {
      if (one->second.leaving || one->second.lost || node_of(one->first) != node) continue;
      if (least == pool.workers.end() || one->second.under_way.size() < least->second.under_way.size()) least = one;
    }
    if (least == pool.workers.end()) return;
    if (least->second.under_way.empty()) {
      give_back(pool, least);
    } else {
      least->second.leaving = true;
    }
  }
}

void OwnedTasks::on_line_ended(WorkerId worker, Instant now) {
  const auto pool = pool_with_.find(worker);
  if (pool != pool_with_.end()) pools_[pool->second]->workers.at(worker).lost = now;
}

std::vector<WorkerId> OwnedTasks::silent(Instant now) const {
  std::vector<WorkerId> workers;
  for (const auto& pool : pools_) {
    for (const auto& [id, worker] : pool->workers)
      if (worker.lost && now >= *worker.lost + options_.word_patience) workers.push_back(id);
  }
  return workers;
}

/// A worker runs its tasks one after the other: the oldest that it has not answered may have begun, the others have
/// not.
std::vector<OwnedTasks::Failed> OwnedTasks::on_gone(WorkerId worker) {
  const auto index = pool_with_.extract(worker);
  if (index.empty()) return {};
  Pool& pool = *pools_[index.mapped()];
  const auto node = pool.workers.extract(worker);
  const Worker& gone = node.mapped();
  pool.busy -= gone.under_way.empty() ? 0 : 1;
  if (gone.lost) pool.broken.push_back(worker);
  std::vector<Failed> failed;
  for (auto task = gone.under_way.rbegin(); task != gone.under_way.rend(); ++task) {
    const auto found = tasks_.find(*task);
    const bool may_have_begun = *task == gone.under_way.front();
    if (may_have_begun && found->second.retries <= 0 && !found->second.cancelled) {
      bytes_ -= found->second.call.size();
      failed.push_back({std::move(found->second.result), std::move(found->second.call)});
      tasks_.erase(found);
      continue;
    }
    found->second.retries -= may_have_begun && found->second.retries > 0 ? 1 : 0;
    queue_again(*task, found->second);
  }
  return failed;
}

std::vector<PendingResultPtr> OwnedTasks::on_refused(const Shape& shape) {
  Pool& pool = *pools_[pool_of(shape)];
  pool.told = 0;
  std::vector<PendingResultPtr> failed;
  if (shape.spread) {
    leave_node(pool);
    return failed;
  }
  for (const TaskId task : std::exchange(pool.queue, {})) {
    const auto found = tasks_.find(task);
    failed.push_back(std::move(found->second.result));
    bytes_ -= found->second.call.size();
    tasks_.erase(found);
  }
  return failed;
}

std::vector<PendingResultPtr> OwnedTasks::forget_all() {
  std::vector<PendingResultPtr> all;
  for (auto& [id, task] : tasks_) all.push_back(std::move(task.result));
  tasks_.clear();
  pools_.clear();
  pool_with_.clear();
  bytes_ = 0;
  return all;
}

std::optional<Wants> OwnedTasks::next_word(Instant now) {
  const Duration unused_max = lacks_workers() ? options_.content_after : options_.unused_max;
  for (const auto& one : pools_) {
    Pool& pool = *one;
    for (auto worker = pool.workers.begin(); pool.queue.empty() && worker != pool.workers.end();) {
      const auto here = worker++;
      if (is_idle(here->second) && now >= here->second.idle_since + unused_max) give_back(pool, here);
    }
    const std::uint32_t wanted = need(pool);
    const auto have = static_cast<std::uint32_t>(pool.workers.size());
    const bool content = pool.queue.empty() && pool.told > have && now >= pool.served_since + options_.content_after;
    if (wanted <= pool.told && pool.returned.empty() && pool.broken.empty() && !content) continue;
    Wants word;
    word.shape = pool.shape;
    word.returned = std::exchange(pool.returned, {});
    word.broken = std::exchange(pool.broken, {});
    if (wanted > pool.told)
      pool.told = std::min(std::bit_ceil(wanted), options_.workers_max);
    else
      pool.told = std::max(wanted, have);
    word.workers = pool.told;
    return word;
  }
  return std::nullopt;
}

std::optional<Instant> OwnedTasks::next_deadline() const {
  std::optional<Instant> next;
  const auto at = [&next](Instant when) { next = next ? std::min(*next, when) : when; };
  const Duration unused_max = lacks_workers() ? options_.content_after : options_.unused_max;
  for (const auto& pool : pools_) {
    const bool served = pool->queue.empty();
    if (!served && pool->waits_since) at(*pool->waits_since + options_.spread_patience);
    if (served && pool->told > pool->workers.size()) at(pool->served_since + options_.content_after);
    for (const auto& [id, worker] : pool->workers) {
      if (worker.lost) {
        at(*worker.lost + options_.word_patience);
      } else if (served && is_idle(worker)) {
        at(worker.idle_since + unused_max);
      }
    }
  }
  return next;
}

}  // namespace paceline::actors
