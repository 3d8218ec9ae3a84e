// Who gets no worker for its tasks for long is told why: what can never run is refused at once, and what waits for what
// others hold would wait without a word.
#include <utility>

#include "actors/router/actor_router.h"
#include "runtime/observe/format.h"
#include "runtime/observe/progress.h"

namespace paceline::actors {

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

ActorRouter::Actions ActorRouter::tick(Instant now) {
  Actions actions;
  for (const ActorId id : std::exchange(unsent_, {}))
    if (const auto actor = actors_.find(id); actor != actors_.end()) send_queue(actions, id, actor->second);
  for (const auto& early : early_.take_late(now))
    answer(actions, early.call.owner, early.from,
           {early.call.task, early.call.owner, tl::unexpected(unknown(early.call.actor))});
  for (const auto& want : lending_.take_starving(now)) {
    Warn warn;
    warn.text = lending_.why_none(want, now);
    if (const auto* const executable = executable_of(want.owner.name, want.root)) {
      warn.driver = executable->driver;
      warn.node = executable->driver_node;
    }
    actions.push_back(std::move(warn));
  }
  std::vector<ActorId> left_alone;
  for (const auto& [id, until] : orphans_)
    if (until <= now) left_alone.push_back(id);
  for (const ActorId id : left_alone) {
    const Actor& actor = actors_.at(id);
    end_living(actions, actor, {ErrorKind::disconnected, describe(actor) + " has ended: its owner's node is gone"},
               false);
  }
  return actions;
}

}  // namespace paceline::actors
