#include "scheduler/shell/averagings.h"

#include <utility>

#include "runtime/base/job_leg.h"

namespace paceline::scheduler {
namespace {

constexpr const char* kFull = "the node's task graph is full";

}  // namespace

Averagings::Averagings(JobId job, TaskGraph& graph, collective::Averager& averager, const Clock& clock, Hooks hooks)
    : job_(job), graph_(graph), averager_(averager), clock_(clock), hooks_(std::move(hooks)) {}

TaskId Averagings::new_task_id() {
  // The top bit, which ids of users' tasks have not, then the job, then its leg.
  const auto leg = static_cast<std::uint64_t>(leg_of(job_));
  return TaskId{(std::uint64_t{1} << 63) | (without_leg(job_).value << 40) | (leg << 32) | ++next_task_};
}

void Averagings::begin_compute(Rank rank) {
  if (const auto it = computing_.find(rank); it != computing_.end()) {
    end_compute(rank);
    graph_.forget(it->second);
  }
  const TaskId id = new_task_id();
  if (!graph_.add({id, TaskKind::compute, {}}) || !graph_.lease(id)) return hooks_.fail(kFull);
  computing_[rank] = id;
}

void Averagings::end_compute(Rank rank) {
  const auto it = computing_.find(rank);
  if (it == computing_.end() || graph_.state(it->second) != TaskState::leased) return;
  (void)graph_.on_done(it->second);
}

void Averagings::add(Averaging averaging, const std::vector<Rank>& contributors) {
  const TaskId id = new_task_id();
  TaskGraph::Task node{id, TaskKind::averaging, {}};
  if (graph_.state(last_)) node.dependencies.push_back(last_);
  for (const Rank rank : contributors) {
    // A stale contribution is of a compute task that is over long ago; the one that still runs is not waited for.
    const auto it = computing_.find(rank);
    if (it != computing_.end() && graph_.state(it->second) == TaskState::done) node.dependencies.push_back(it->second);
  }
  if (!graph_.add(node)) return hooks_.fail(kFull);
  open_.emplace(id, std::move(averaging));
  const TaskId before = std::exchange(last_, id);
  if (const auto state = graph_.state(before); state && state != TaskState::waiting && !open_.contains(before))
    graph_.forget(before);
}

void Averagings::start(Instant now) {
  while (!running_) {
    const auto id = graph_.next_ready(TaskKind::averaging);
    if (!id || !open_.contains(*id) || !graph_.lease(*id)) return;
    in_flight_ = *id;
    auto reduction = open_.at(*id).prepare();
    began_ = clock_.now();
    if (!reduction.outputs.empty() && !collective::Averager::is_small(reduction)) {
      if (auto submitted = averager_.submit(id->value, std::move(reduction), hooks_.owner()); !submitted)
        return hooks_.fail(submitted.error().text);
      running_ = true;
      return;
    }
    if (!reduction.outputs.empty()) collective::Averager::run_inline(reduction);
    if (must_wait()) return;
    finish(now);
  }
}

/// Whether the one that is reduced must wait for what is to be told before it.
bool Averagings::must_wait() {
  const auto& told = open_.at(in_flight_).told;
  running_ = reduced_ = told && !hooks_.may_finish(*told);
  return reduced_;
}

void Averagings::finish(Instant now) {
  auto node = open_.extract(in_flight_);
  (void)graph_.on_done(in_flight_);
  if (in_flight_ != last_) graph_.forget(in_flight_);
  running_ = true;  // The next one may need the buffers that this one's results leave.
  node.mapped().finish(now);
  running_ = false;
}

bool Averagings::on_reduced(std::uint64_t id, Instant now) {
  if (!running_ || id != in_flight_.value) return false;
  if (must_wait()) return true;
  finish(now);
  start(now);
  return true;
}

bool Averagings::finish_what_waited(Instant now) {
  if (!reduced_ || must_wait()) return false;
  finish(now);
  start(now);
  return true;
}

void Averagings::leave() {
  if (running_) left_ = open_.extract(in_flight_);  // What only it holds is read and written until it is done.
  if (!left_.empty()) graph_.forget(left_.key());
  for (const auto& [rank, id] : std::exchange(computing_, {})) graph_.forget(id);
  for (const auto& [id, averaging] : std::exchange(open_, {})) graph_.forget(id);
  graph_.forget(std::exchange(last_, TaskId{}));
  running_ = reduced_ = false;
}

}  // namespace paceline::scheduler
