#include "actors/tasks/deadlines.h"

#include <algorithm>

namespace paceline::actors {
namespace {

constexpr Duration kLongest = std::chrono::hours(24 * 365 * 100);

}  // namespace

bool Deadlines::add(const PendingResultPtr& result, std::string name, Duration timeout, Instant now) {
  if (by_id_.contains(result->task())) return false;
  const auto at = tasks_.emplace(now + std::clamp(timeout, Duration::zero(), kLongest),
                                 Task{result->task(), result, std::move(name), timeout});
  by_id_.emplace(result->task(), at);
  return at == tasks_.begin();
}

void Deadlines::remove(TaskId task) {
  const auto found = by_id_.extract(task);
  if (!found.empty()) tasks_.erase(found.mapped());
}

std::vector<Deadlines::Late> Deadlines::take_late(Instant now) {
  std::vector<Late> late;
  while (!tasks_.empty() && tasks_.begin()->first <= now) {
    auto task = std::move(tasks_.extract(tasks_.begin()).mapped());
    by_id_.erase(task.id);
    auto result = task.result.lock();
    if (result && !result->ready()) late.push_back({std::move(result), std::move(task.name), task.timeout});
  }
  return late;
}

std::optional<Instant> Deadlines::next() const {
  if (tasks_.empty()) return std::nullopt;
  return tasks_.begin()->first;
}

}  // namespace paceline::actors
