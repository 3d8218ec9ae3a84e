#include "scheduler/record/chronicle.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace paceline::scheduler {
namespace {

constexpr Duration kReplayLook = std::chrono::milliseconds(1);

}  // namespace

Chronicle::Chronicle(Core& core, const std::string& path, const std::string& head, std::optional<Recorded> replay)
    : core_(core) {
  if (replay) {
    replay_.emplace(std::move(replay->decisions));
    is_cut_ = replay->is_cut;
  }
  if (path.empty()) return;
  if (auto writer = RecordWriter::create(path, head)) record_.emplace(std::move(*writer));
}

void Chronicle::record(const Decision& decision) {
  const bool after_the_end = decision.kind == Decision::Kind::gone && core_.is_over();
  if (record_ && !after_the_end) record_->add(decision);
}

void Chronicle::flush() {
  if (record_) record_->flush();
}

void Chronicle::finish() {
  if (record_) record_->finish();
}

void Chronicle::hear(const Decision& decision, Instant now) {
  if (!replay_) {
    record(decision);
    return core_.on_told(decision);
  }
  if (decision.kind == Decision::Kind::gone && replay_->next() && !replay_->will_go(decision.rank))
    return lose_way("worker " + to_string(decision.rank) + " has ended, which it did not in the run that is replayed");
  replay_->happened(decision);
  follow(now);
}

void Chronicle::decide(const Decision& decision) {
  if (!replay_) {
    record(decision);
    return core_.on_told(decision);
  }
  if (lost_way_ || is_cut_off()) return;
  const bool as_before = replay_->is_next(decision) && replay_->next()->contributions == decision.contributions;
  if (as_before) return core_.on_told(take());
  const Version after{core_.done().value + 1};
  lose_way("the replay went another way than the run, at update " + to_string(std::max(decision.version, after)) +
           ": is this the same Paceline, and the same machine?");
}

void Chronicle::lose_way(std::string text) {
  if (!std::exchange(lost_way_, true)) core_.fail(std::move(text));
}

Decision Chronicle::take() {
  Decision taken = replay_->take();
  for (const auto& c : taken.contributions) core_.limit(c.rank);
  record(taken);
  return taken;
}

void Chronicle::follow(Instant now) {
  looked_ = std::max(looked_, now);
  if (std::exchange(following_, true)) return;
  while (!lost_way_ && core_.go_on()) {
    if (core_.finish_averaging(now)) continue;
    const Decision* const next = replay_->next();
    if (!replay_->is_due() && !(next && core_.needs_nothing(*next))) break;
    core_.on_told(take());
  }
  following_ = false;
}

std::optional<Instant> Chronicle::next_look() const {
  return replay_->next() && !lost_way_ ? std::optional(looked_ + kReplayLook) : std::nullopt;
}

bool Chronicle::has_published(Rank rank, const memory::Window* window) {
  const auto* wanted = replay_->next_contribution(rank);
  if (!wanted) return true;
  if (!window) return false;
  const auto published = window->published();
  if (!published) return false;
  const auto tag = window->tag(*published);
  // The worker writes the tags of other buffers only: if it is still the one, this is what was published.
  if (window->published() != published) return false;
  const auto here = Replay::publication(tag.iteration, tag.bodies);
  const auto there = Replay::publication(wanted->iteration->value, wanted->bodies);
  if (here > there)
    lose_way("worker " + to_string(rank) + " went past update " + to_string(*wanted->iteration) +
             ", which it did not in the run that is replayed");
  return here == there;
}

}  // namespace paceline::scheduler
