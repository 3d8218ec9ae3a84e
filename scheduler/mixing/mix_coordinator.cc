#include "scheduler/mixing/mix_coordinator.h"

#include <algorithm>
#include <utility>

namespace paceline::scheduler {
namespace {

constexpr std::int64_t kFlowLook = 64;  // Versions in which a graph is taken to have shown all of its edges.

}  // namespace

MixCoordinator::MixCoordinator(Workplace& work, Options options)
    : Coordinator(work),
      options_(std::move(options)),
      pace_(work, *this, {}),
      neighbours_(work, pace_, *this, {.plan = options_.plan, .columns_add_up = options_.push_sum}),
      mixing_(work, pace_, neighbours_, options_) {}

void MixCoordinator::step(const Decision& d) {
  const Instant now = work_.now();
  if (d.kind != Decision::Kind::arrived) return neighbours_.step(d);
  d.version < work_.job.first ? mixing_.on_start(d.rank, now) : mixing_.on_arrival(d.rank, d.version, d.took, now);
}

/// Others may be more exchanges ahead than this worker will ever do.
void MixCoordinator::on_last(Rank rank, Instant now) {
  if (mixing_.overlaps()) leave(rank, now);
}

std::optional<Rank> MixCoordinator::running_dry() const {
  const auto& engine = neighbours_.engine();
  const auto [step, exchange] = mixing_.furthest();
  if (pace_.last().value - std::max(step, engine.furthest()).value < kFlowLook) return {};  // It ends before that.
  const auto dry = engine.running_dry(exchange.next(), kFlowLook);
  return dry.empty() ? std::nullopt : std::optional(dry.front());
}

void MixCoordinator::after_gone() {
  if (!options_.push_sum || !work_.view.leads()) return;
  const auto dry = running_dry();
  if (!dry) return;
  if (options_.plan_of && options_.plan_of(left())) return pace_.endings.agree_on(Agreement::On::graph);
  work_.fail_job(
      "what worker " + to_string(*dry) +
      " gives to others comes back to it no more, since workers have left: under push-sum its model would run "
      "out. Go on from the last checkpoint (--resume) with the workers that are left");
}

/// With overlap an exchange may begin when an iteration is done, and there are no more of them than of iterations.
Version MixCoordinator::last_given(Version frozen) const { return mixing_.overlaps() ? frozen.next() : frozen; }

void MixCoordinator::on_remade(Version last, const std::vector<Rank>& members, Instant now) {
  neighbours_.remake(last, options_.plan_of ? options_.plan_of(members) : nullptr, now);
}

}  // namespace paceline::scheduler
