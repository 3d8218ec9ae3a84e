// What there is to be seen of the workers that a node lends. Who gets none for its tasks for long is told why: what can
// never run is refused at once, and what waits for what others hold would wait without a word.
#include <algorithm>

#include "actors/router/lending.h"
#include "runtime/observe/format.h"
#include "runtime/observe/progress.h"

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

/// "2 cpus", "1 cpu and 2 GiB of memory".
std::string to_string(const Capacity& what) {
  std::string memory = what.memory > 0 ? observe::memory_text(what.memory) + " of memory" : "";
  if (what.cpus == 0 && !memory.empty()) return memory;
  return observe::format("%.6g", what.cpus) + (what.cpus == 1 ? " cpu" : " cpus") +
         (memory.empty() ? "" : " and " + memory);
}

std::vector<Lending::WantView> Lending::take_starving(Instant now) {
  std::vector<WantView> starving;
  if (!next_starving_ || now < *next_starving_) return starving;
  for (auto& [owner, borrower] : owners_) {
    for (auto& [shape, want] : borrower.wants) {
      if (!want.starving || now < *want.starving + options_.patience) continue;
      starving.push_back({owner, borrower.root, shape, want.workers, 0, want.starving});
      want.told = true;
    }
  }
  note_lacks();
  return starving;
}

/// What may be here and is not.
std::string Lending::why_none_here(const WantView& want, Instant now) const {
  const std::string name = "node " + to_string(options_.node);
  if (want.shape.cpus > options_.has.cpus) return name + " has only " + to_string(Capacity{options_.has.cpus, 0});
  if (!options_.has.has_room_for(needs_of(want.shape)))
    return name + " has only " + to_string(Capacity{0, options_.has.memory});
  if (fits(want.shape)) return "its workers are still being started, or it has as many as it can have";
  const bool lacks_cpus = !free().has_room_for({want.shape.cpus, 0});
  const std::string held =
      lacks_cpus ? "the cpus of " + name + " are held by " : "the memory of " + name + " is held by ";
  std::string text;
  for (const auto& hold : holds()) {
    if ((lacks_cpus ? hold.holds.cpus : hold.holds.memory) <= 0) continue;
    text += (text.empty() ? held : " and ") + (hold.owner == want.owner ? "itself" : hold.owner.name) + " (" +
            to_string(hold.holds) + ", for " + observe::duration_text(now - hold.since) + ")";
  }
  return text.empty() ? (lacks_cpus ? "no cpu of " : "no memory of ") + name + " is free" : text;
}

std::string Lending::why_none(const WantView& want, Instant now) const {
  const NodeId node = want.shape.node;
  const std::string needs = to_string(needs_of(want.shape));
  std::string text = "tasks of " + want.owner.name + " that need " + needs +
                     (node.value < 0 ? "" : " on node " + to_string(node)) + " have had no worker for " +
                     observe::duration_text(now - want.lacking.value_or(now)) + ": ";
  if (may_be_here(want.shape))
    text += why_none_here(want, now) + (node.value < 0 && !nodes_.empty() ? ", and no other node has lent any" : "");
  else
    text += "node " + to_string(node) + (nodes_.contains(node) ? " has lent none, what it has is held" : " is gone");
  return text +
         "; they begin when there is room: `paceline status` says who holds what, and a cluster of more nodes "
         "(--nodes) has more of all";
}

}  // namespace paceline::actors
