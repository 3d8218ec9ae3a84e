#include "scheduler/rounds/sealing.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "runtime/observe/format.h"

namespace paceline::scheduler {

void Sealing::seal(const RoundEngine::Seal& what, const Round& round, Version done, PartialSums::Group& group,
                   Decision& sealed) {
  group.sums.members = static_cast<std::int64_t>(what.members.size());
  const bool cuts_short = abandons_ || round.late == Lateness::finishes;
  for (const Rank rank : what.members) {
    auto& found = sealed.contributions.emplace_back();
    found.rank = rank;
    auto* const member = work_.windows.find(rank);
    if (!member) continue;  // Has not opened its share yet: it contributes nothing.
    if (work_.chronicle.replays() && !work_.chronicle.replay().next_contribution(rank)) continue;
    auto& window = member->window;
    const auto buffer = window.seal();
    if (!buffer && is_alone()) {
      found.iteration = what.version;
      found.bodies = weighing_.bodies;
    }
    if (!buffer) continue;
    const auto tag = window.tag(*buffer);
    if (!counts(tag, what.version, round, done)) {
      window.unseal(memory::Window::Unseal::keep);
      continue;
    }
    found.iteration = Version{tag.iteration};
    found.bodies = tag.bodies;
    work_.ledger.on_done(rank, tag.since, tag.through, round.payload == Payload::models);
    scheduler::add(group.contents, work_.ledger.contents(rank, round.payload == Payload::gradients));
    add_contribution(group, {rank, *buffer, tag.samples, tag.through}, tag, what.version);
    if (cuts_short) work_.counters.abandoned_bodies += std::max(0, weighing_.bodies - tag.bodies);
  }
  if (abandons_ && work_.job.node_of.size() > 1) {
    const auto missing = static_cast<std::int64_t>(what.members.size() - group.contributions.size());
    work_.counters.abandoned_bodies += missing * weighing_.bodies;
  }
  if (is_alone() || (!cuts_short && !weighing_.by_samples))
    group.sums.samples = round.kind == Round::Kind::sync ? newly_computed() : 0;
  check_learning_rates(group, what.version);
}

/// Samples since the last average of all: what the late published in between is in no sum, or in several.
std::int64_t Sealing::newly_computed() {
  std::int64_t all = 0;
  for (const auto& [rank, member] : work_.windows.all())
    all += member.window.progress().samples.load(std::memory_order_relaxed);
  return all - std::exchange(counted_samples_, all);
}

bool Sealing::counts(const memory::BufferTag& tag, Version v, const Round& round, Version done) const {
  // Gradients of another version do not, unless what was late is to.
  if (round.payload == Payload::gradients) return tag.iteration == v.value || round.late == Lateness::accumulates;
  // What was published before the last average is in it.
  return !weighing_.by_samples || (tag.iteration > done.value && tag.samples > 0);
}

void Sealing::add_contribution(PartialSums::Group& group, const PartialSums::Contribution& from,
                               const memory::BufferTag& tag, Version v) {
  if (weighing_.by_bodies && tag.bodies < weighing_.bodies) {
    // Sealed: nobody else touches it before the round is executed.
    void* sum = work_.windows.at(from.rank).window.data(from.buffer).data();
    const void* inputs[] = {sum};
    collective::sum_into(sum, weighing_.of_unfinished(tag.bodies), inputs, work_.windows.elements(),
                         work_.windows.dtype());
  }
  group.contributions.push_back(from);
  group.bodies += tag.bodies;
  add(group.sums, {tag.loss_sum, tag.loss_count, tag.samples, tag.learning_rate, {}, 0});
  work_.counters.count_staleness(v.value - tag.iteration);
}

void Sealing::check_learning_rates(const PartialSums::Group& group, Version v) {
  std::optional<std::pair<Rank, double>> first;
  for (const auto& c : group.contributions) {
    const auto& tag = work_.windows.at(c.rank).window.tag(c.buffer);
    if (tag.iteration != v.value) continue;
    if (!first) {
      first = {c.rank, tag.learning_rate};
    } else if (std::abs(first->second - tag.learning_rate) > 1e-12 * std::abs(first->second)) {
      return work_.fail_job(observe::format(
          "learning rates differ at update %lld: worker %d has %g, worker %d has %g; let "
          "shared.schedule(scheduler) advance them",
          static_cast<long long>(v.value), first->first.value, first->second, c.rank.value, tag.learning_rate));
    }
  }
}

}  // namespace paceline::scheduler
