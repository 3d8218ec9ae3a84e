// What there is to be seen of the workers that a node lends.
#include <algorithm>

#include "actors/router/lending.h"

namespace paceline::actors {
namespace {

void note_since(std::optional<Instant>& since, bool is_so, Instant now) {
  if (!is_so) {
    since.reset();
  } else if (!since) {
    since = now;
  }
}

}  // namespace

void Lending::note_lacks() {
  next_starving_.reset();
  for (auto& [owner, borrower] : owners_) {
    for (auto& [shape, want] : borrower.wants) {
      const bool starves = owner.node == options_.node && want.missing() > 0 && want.have() == 0 && !want.told;
      note_since(want.lacking, want.missing() > 0, now_);
      note_since(want.starving, starves, now_);
      if (want.starving) next_starving_ = earlier(next_starving_, *want.starving + options_.patience);
    }
  }
}

std::vector<Lending::WantView> Lending::wants() const {
  std::vector<WantView> views;
  for (const auto& [owner, borrower] : owners_) {
    if (owner.node != options_.node) continue;
    for (const auto& [shape, want] : borrower.wants)
      if (want.workers > 0 || want.have() > 0)
        views.push_back(
            {owner, borrower.root, shape, want.workers, want.have(), want.missing() > 0 ? want.lacking : std::nullopt});
  }
  return views;
}

std::vector<Lending::HoldView> Lending::holds() const {
  std::map<Owner, HoldView> holds;
  for (const auto& [id, worker] : workers_) {
    if (!worker.lent) continue;
    const Capacity held = held_by(worker);
    if (worker.waits && held.memory == 0) continue;
    auto& hold = holds.try_emplace(worker.lent->owner, HoldView{worker.lent->owner, 0, {}, worker.since}).first->second;
    ++hold.workers;
    hold.holds.add(held);
    hold.since = std::min(hold.since, worker.since);
  }
  std::vector<HoldView> views;
  for (auto& [owner, hold] : holds) views.push_back(std::move(hold));
  return views;
}

std::optional<Instant> Lending::lent_since(WorkerId id) const {
  const auto worker = workers_.find(id);
  return worker == workers_.end() || !worker->second.lent ? std::nullopt : std::optional(worker->second.since);
}

}  // namespace paceline::actors
