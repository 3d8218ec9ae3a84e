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
      pace_(work, *this, {.returns = options_.overlap > 0 ? OwnPace::Return::never : OwnPace::Return::with_a_graph}),
      neighbours_(work, pace_, *this,
                  {.plan = options_.plan, .columns_add_up = options_.push_sum, .passing = options_.overlap > 0}),
      mixing_(work, pace_, neighbours_, options_) {}

void MixCoordinator::step(const Decision& d) {
  const Instant now = work_.now();
  if (d.kind != Decision::Kind::arrived) return neighbours_.step(d);
  if (pace_.returns(d.rank)) return void(pace_.comes_in(d.rank, d.version, false));
  if (d.version >= work_.job.first) return mixing_.on_arrival(d.rank, d.version, d.took, now);
  if (!mixing_.has(d.rank)) mixing_.on_start(d.rank, Version{work_.job.first.value - 1}, now);
}

/// The workers of a cluster may leave together.
bool MixCoordinator::is_shared(Rank rank, Version own) const {
  const auto& engine = neighbours_.engine();
  return !options_.clusters || own < work_.job.first || engine.row(rank, own).size() >= engine.left().size();
}

/// Others may be more exchanges ahead than this worker will ever do.
void MixCoordinator::on_last(Rank rank, Instant now) {
  if (mixing_.overlaps()) leave(rank, now);
}

std::optional<Rank> MixCoordinator::running_dry() const {
  const auto& engine = neighbours_.engine();
  const auto [step, exchange] = mixing_.furthest();
  const bool ends_before = pace_.last().value - std::max(step, engine.furthest()).value < kFlowLook;
  if (ends_before && !may_remake()) return {};  // Its model is no worse than the job's failure.
  const auto dry = engine.running_dry(exchange.next(), kFlowLook);
  return dry.empty() ? std::nullopt : std::optional(dry.front());
}

bool MixCoordinator::may_remake() const { return options_.plan_of && options_.plan_of(left()); }

void MixCoordinator::after_gone() {
  if (!options_.push_sum || !work_.view.leads()) return;
  const auto dry = running_dry();
  if (!dry) return;
  if (may_remake()) return pace_.endings.agree_on(Agreement::On::graph);
  work_.fail_job(
      "what worker " + to_string(*dry) +
      " gives to others comes back to it no more, since workers have left: under push-sum its model would run "
      "out. Go on from the last checkpoint (--resume) with the workers that are left");
}

/// Who contributes the model before its step does so as soon as the one before is mixed. With overlap an exchange may
/// begin when an iteration is done, and there are no more of them than of iterations. Who is gone may have been
/// further.
Version MixCoordinator::last_given(Version frozen) const {
  const bool is_ahead = options_.combine_then_adapt || mixing_.overlaps();
  return std::max(is_ahead ? frozen.next() : frozen, neighbours_.engine().furthest());
}

void MixCoordinator::on_remade(Version last, const std::vector<Rank>& members, const std::vector<Rank>& join,
                               Instant now) {
  auto all = members;
  all.insert(all.end(), join.begin(), join.end());
  std::sort(all.begin(), all.end());
  auto plan = options_.plan_of ? options_.plan_of(all) : nullptr;
  if (!plan) plan = options_.plan_of_all;
  neighbours_.remake(last, std::move(plan), join, now);
}

}  // namespace paceline::scheduler
