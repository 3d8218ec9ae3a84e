#include "scheduler/record/replay.h"

#include <algorithm>
#include <utility>

namespace paceline::scheduler {

using Kind = Decision::Kind;

/// What a seal found. Else nothing: an end's members were not sealed.
const std::vector<Decision::Contribution>& Replay::seals(const Decision& d) {
  static const std::vector<Decision::Contribution> none;
  return d.kind == Kind::ends_apart || d.kind == Kind::remade ? none : d.contributions;
}

Replay::Replay(std::vector<Decision> decisions) : decisions_(std::move(decisions)) {
  for (std::size_t i = 0; i < decisions_.size(); ++i) {
    const Decision& d = decisions_[i];
    if (d.kind == Kind::joined) joining_.insert(d.rank);
    if (d.kind == Kind::gone) gone_[d.rank] = i;
    if (d.kind == Kind::ends || d.kind == Kind::ends_apart) ends_ = d.version;
    if (d.kind == Kind::ends_apart)
      for (const auto& c : d.contributions) ends_apart_[c.rank] = c.iteration.value_or(d.version);
    for (const auto& c : seals(d)) {
      const bool found = c.iteration.has_value();
      seals_[c.rank].decisions.push_back(i);
      seals_[c.rank].may_publish.push_back(found ? publication(c.iteration->value, c.bodies)
                                                 : publication(d.version.value, 0));
    }
  }
  // Where a seal found nothing that counts, a later one may still take what was published before it.
  for (auto& [rank, seals] : seals_)
    for (std::size_t k = seals.may_publish.size(); k-- > 1;)
      seals.may_publish[k - 1] = std::min(seals.may_publish[k - 1], seals.may_publish[k]);
}

const Decision* Replay::next() const { return at_ < decisions_.size() ? &decisions_[at_] : nullptr; }

bool Replay::is_next(const Decision& decision) const { return next() && next()->is_same_event(decision); }

bool Replay::is_due() const {
  if (!next()) return false;
  switch (next()->kind) {
    case Kind::joined:
    case Kind::returned:
    case Kind::arrived:
    case Kind::partial:
    case Kind::exchanged:
    case Kind::batched:
    case Kind::ends: return happened_.contains(key_of(*next()));
    case Kind::activated:
    case Kind::counted:
    case Kind::gone:
    case Kind::gone_elsewhere:
    case Kind::back_elsewhere:
    case Kind::passed_over:
    case Kind::frozen:
    case Kind::alive:
    case Kind::ends_apart:
    case Kind::node_gone:
    case Kind::remade:
    case Kind::looked: return true;
    case Kind::sealed:
    case Kind::executed:
    case Kind::merged:
    case Kind::averaged:
    case Kind::stepped: return false;
  }
  return false;
}

void Replay::happened(const Decision& decision) { happened_.insert(key_of(decision)); }

Decision Replay::take() {
  Decision taken = std::move(decisions_[at_]);
  if (const auto it = happened_.find(key_of(taken)); it != happened_.end()) happened_.erase(it);
  for (const auto& c : seals(taken)) ++seals_[c.rank].next;
  ++at_;
  return taken;
}

const Decision::Contribution* Replay::next_contribution(Rank rank) const {
  const auto it = seals_.find(rank);
  if (it == seals_.end() || it->second.next >= it->second.decisions.size()) return nullptr;
  const auto& found = decisions_[it->second.decisions[it->second.next]].contributions;
  const auto own = std::find_if(found.begin(), found.end(), [&](const auto& c) { return c.rank == rank; });
  return own->iteration ? &*own : nullptr;
}

std::int64_t Replay::may_publish(Rank rank) const {
  const auto it = seals_.find(rank);
  if (it == seals_.end() || it->second.next >= it->second.may_publish.size()) return INT64_MAX;
  return it->second.may_publish[it->second.next];
}

Version Replay::sealed(Rank rank) const {
  const auto it = seals_.find(rank);
  const bool any = it != seals_.end() && it->second.next > 0;
  return any ? decisions_[it->second.decisions[it->second.next - 1]].version : Version{-1};
}

std::optional<Version> Replay::ends(Rank rank) const {
  const auto it = ends_apart_.find(rank);
  return it == ends_apart_.end() ? ends_ : it->second;
}

bool Replay::will_go(Rank rank) const {
  const auto it = gone_.find(rank);
  return it != gone_.end() && it->second >= at_;
}

}  // namespace paceline::scheduler
