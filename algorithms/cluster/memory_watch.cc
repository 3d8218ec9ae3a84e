#include "algorithms/cluster/memory_watch.h"

#include <algorithm>
#include <limits>

#include "runtime/observe/format.h"

namespace paceline::cluster {
namespace {

std::string text(std::uint64_t bytes) { return observe::memory_text(static_cast<double>(bytes)); }
std::uint64_t beyond(std::uint64_t has, std::uint64_t most) { return has - std::min(has, most); }

}  // namespace

std::optional<MemoryWatch::Victim> MemoryWatch::on_look(const Look& look, Instant now) {
  if (!look.at_all) {
    plan(look, now);
    return std::nullopt;
  }
  used_ = 0;
  used_by_.clear();
  for (const Worker& worker : look.workers) {
    used_ += worker.has;
    used_by_[worker.id] = worker.has;
  }
  plan(look, now);
  if (ending_ && !used_by_.contains(*ending_)) ending_.reset();  // It had ended before it was to.
  if (ending_) return std::nullopt;                              // What it has is not free yet.
  const auto most = std::max_element(look.workers.begin(), look.workers.end(), [](const Worker& a, const Worker& b) {
    return std::pair(beyond(a.has, a.asked), a.has) < std::pair(beyond(b.has, b.asked), b.has);
  });
  const bool too_much = options_.limit > 0 && used_ > options_.limit;
  const bool too_little = look.available < options_.reserve;
  if (!too_little) short_since_.reset();
  std::optional<Victim> victim;
  if (too_much)
    victim = of_limit(*most);
  else if (too_little && most != look.workers.end())
    victim = of_machine(*most, look.available, now);
  if (victim) ending_ = victim->worker;
  return victim;
}

/// When to look again, and at what.
void MemoryWatch::plan(const Look& look, Instant now) {
  const auto limit = options_.limit > 0 ? options_.limit : std::numeric_limits<std::uint64_t>::max();
  const auto left_of_limit = beyond(limit, used_);
  const auto left = std::min(left_of_limit, beyond(look.available, options_.reserve));
  const auto filled = static_cast<double>(left) / static_cast<double>(options_.filled_a_second);
  next_look_ = now + std::clamp<Duration>(from_seconds(std::min(filled, 1e6)), options_.shortest, options_.longest);
  if (!look.at_all) return;
  next_at_all_ = std::max(next_look_, now + from_seconds(seconds(look.took) / options_.cost));
  if (ending_ || left == 0) next_at_all_ = next_look_;
  at_all_below_ = std::max(2 * options_.reserve, beyond(look.available, left_of_limit / 2));
}

std::optional<MemoryWatch::Victim> MemoryWatch::of_limit(const Worker& most) const {
  const std::string problem = "killed for its memory: it had " + text(most.has) + " when the workers of node " +
                              to_string(options_.node) + " had " + text(used_) + " of the " + text(options_.limit) +
                              " that they may have (paceline up --memory)";
  return Victim{most.id, problem};
}

std::optional<MemoryWatch::Victim> MemoryWatch::of_machine(const Worker& most, std::uint64_t available, Instant now) {
  if (!short_since_) short_since_ = now;
  if (most.has < options_.reserve / 2) {  // It is somebody else's.
    next_look_ = now + options_.courtesy;
    return std::nullopt;
  }
  const double share = static_cast<double>(most.has) / static_cast<double>(most.has + available + options_.reserve);
  if (now < *short_since_ + std::chrono::duration_cast<Duration>(options_.courtesy * (1 - share))) return std::nullopt;
  const std::string problem = "killed for its memory: it had " + text(most.has) + " when the machine had " +
                              text(available) + " left, less than the " + text(options_.reserve) +
                              " that are kept free";
  return Victim{most.id, problem};
}

void MemoryWatch::on_gone(WorkerId worker) {
  if (ending_ == worker) ending_.reset();
  const auto its = used_by_.extract(worker);
  if (!its.empty()) used_ -= its.mapped();
}

std::uint64_t MemoryWatch::used_by(WorkerId worker) const {
  const auto found = used_by_.find(worker);
  return found == used_by_.end() ? 0 : found->second;
}

}  // namespace paceline::cluster
