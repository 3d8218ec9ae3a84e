#include "scheduler/mixing/mix_engine.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "runtime/base/check.h"

namespace paceline::scheduler {
namespace {

constexpr Version kForEver{INT64_MAX};

}  // namespace

MixEngine::MixEngine(Options options, std::shared_ptr<const MixPlan> plan) : options_(std::move(options)) {
  PACELINE_CHECK(plan != nullptr && !options_.node_of.empty(), "a mix engine needs a plan and workers");
  plans_.emplace(Version{INT64_MIN}, std::move(plan));
}

void MixEngine::remake(Version last, std::shared_ptr<const MixPlan> plan) {
  PACELINE_CHECK(plan != nullptr && last.next() >= plans_.rbegin()->first, "plans follow each other");
  plans_.insert_or_assign(last.next(), std::move(plan));
}

std::vector<Rank> MixEngine::left() const {
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < options_.node_of.size(); ++i)
    if (const Rank rank{static_cast<std::int32_t>(i)}; !is_gone(rank)) ranks.push_back(rank);
  return ranks;
}

bool MixEngine::is_gone(Rank rank) const {
  const auto it = gone_.find(rank);
  return it != gone_.end() && it->second.back().until == kForEver;
}

MixEngine::Actions MixEngine::on_contribution(Rank from, Version v) {
  Actions out;
  if (from.value < 0 || static_cast<std::size_t>(from.value) >= options_.node_of.size()) return out;
  const auto [last, is_first] = contributed_.try_emplace(from, v);
  if (!is_first && v <= last->second) return out;
  last->second = v;
  if (is_local(from)) {
    std::set<NodeId> others;
    for (Rank to : receivers(from, v)) {
      if (!is_local(to)) others.insert(options_.node_of[static_cast<std::size_t>(to.value)]);
    }
    for (NodeId to : others) out.push_back(Send{to, from, v});
  }
  const auto readers = readers_of(from, v);
  if (readers.empty()) {
    out.push_back(Release{from, v});
    return out;
  }
  held_[{v, from}] = static_cast<std::int32_t>(readers.size());
  for (Rank reader : readers) mix_if_ready(reader, out);
  return out;
}

MixEngine::Actions MixEngine::on_wanted(Rank rank, Version v) {
  Actions out;
  PACELINE_CHECK(is_local(rank), "a mixing is wanted where its worker is");
  wanted_[rank] = {v};
  mix_if_ready(rank, out);
  return out;
}

MixEngine::Actions MixEngine::on_mixed(Rank rank, Version v) {
  Actions out;
  for (const Share& share : row(rank, v)) {
    const auto it = held_.find({v, share.from});
    PACELINE_CHECK(it != held_.end(), "what was mixed had been held");
    if (--it->second > 0) continue;
    held_.erase(it);
    out.push_back(Release{share.from, v});
  }
  return out;
}

MixEngine::Actions MixEngine::on_gone(Rank rank, Version contributed, Version mixed) {
  Actions out;
  if (is_gone(rank)) {  // It had done its last, and was killed; or is back, which is not heard of yet.
    if (contributed > gone_.at(rank).back().contributed) gone_again_[rank] = {contributed, mixed};
    return out;
  }
  gone_[rank].push_back({contributed, mixed, back_after(rank, contributed)});
  wanted_.erase(rank);
  // It takes no more shares itself: contributions to versions that it will not mix have one reader less.
  for (auto it = held_.begin(); it != held_.end();) {
    const auto takers = plan(it->first.version).receivers(it->first.rank, it->first.version);
    const bool reads = is_local(rank) && it->first.version > mixed &&
                       (it->first.rank == rank || std::find(takers.begin(), takers.end(), rank) != takers.end());
    if (reads && --it->second == 0) {
      out.push_back(Release{it->first.rank, it->first.version});
      it = held_.erase(it);
    } else {
      ++it;
    }
  }
  mix_what_is_ready(out);
  return out;
}

/// Of one that had contributed this last; kForEver: it has not come back.
Version MixEngine::back_after(Rank rank, Version contributed) const {
  const auto it = back_.find(rank);
  if (it == back_.end()) return kForEver;
  const auto after = std::upper_bound(it->second.begin(), it->second.end(), contributed);
  return after == it->second.end() ? kForEver : *after;
}

MixEngine::Actions MixEngine::on_back(Rank rank, Version last) {
  back_[rank].push_back(last);
  if (is_gone(rank)) gone_.at(rank).back().until = last;
  const auto again = gone_again_.extract(rank);
  return again ? on_gone(rank, again.mapped().contributed, again.mapped().mixed) : Actions{};
}

/// Of one that had left, not all may have come that it said it had given.
MixEngine::Actions MixEngine::on_lost(Rank rank) {
  const auto last = contributed_.find(rank);
  Version contributed = last == contributed_.end() ? Version{-1} : last->second;
  if (const auto back = back_.find(rank); back != back_.end()) contributed = std::max(contributed, back->second.back());
  if (!is_gone(rank)) return on_gone(rank, contributed, Version{-1});
  gone_.at(rank).back().contributed = contributed;
  Actions out;
  mix_what_is_ready(out);
  return out;
}

void MixEngine::mix_what_is_ready(Actions& out) {
  std::vector<Rank> waiting;
  for (const auto& [reader, v] : wanted_) waiting.push_back(reader);
  for (Rank reader : waiting) mix_if_ready(reader, out);
}

Version MixEngine::furthest() const {
  Version furthest{-1};
  for (const auto& [rank, v] : contributed_) furthest = std::max(furthest, v);
  return furthest;
}

bool MixEngine::has_contributed(Rank rank, Version v) const {
  const auto last = contributed_.find(rank);
  return last != contributed_.end() && v <= last->second;
}

bool MixEngine::ready(Rank rank, Version v) const {
  const auto shares = row(rank, v);
  return std::all_of(shares.begin(), shares.end(), [&](const Share& share) { return held_.contains({v, share.from}); });
}

std::optional<Rank> MixEngine::missing(Rank rank) const {
  const auto it = wanted_.find(rank);
  return it == wanted_.end() ? std::nullopt : it->second.missing;
}

bool MixEngine::gives(Rank rank, Version v) const {
  const auto it = gone_.find(rank);
  return it == gone_.end() || std::none_of(it->second.begin(), it->second.end(), [v](const Absence& absence) {
           return absence.contributed < v && v <= absence.until;
         });
}

bool MixEngine::takes(Rank rank, Version v) const {
  const auto it = gone_.find(rank);
  return it == gone_.end() || std::none_of(it->second.begin(), it->second.end(), [v](const Absence& absence) {
           return absence.mixed < v && v <= absence.until;
         });
}

std::vector<Share> MixEngine::row(Rank rank, Version v) const {
  auto shares = plan(v).row(rank, v);
  if (gone_.empty()) return shares;
  double gone = 0;
  std::erase_if(shares, [&](const Share& share) {
    const bool is_gone = !gives(share.from, v);
    gone += is_gone ? share.weight : 0;
    return is_gone;
  });
  if (!options_.columns_add_up) {
    for (Share& own : shares)
      if (own.from == rank) own.weight += gone;
    return shares;
  }
  for (Rank to : plan(v).receivers(rank, v)) {
    if (takes(to, v)) continue;
    for (const Share& lost : plan(v).row(to, v)) {
      if (lost.from != rank) continue;
      for (Share& own : shares) {
        if (own.from == rank) own.weight += lost.weight;
      }
    }
  }
  return shares;
}

std::vector<Rank> MixEngine::receivers(Rank from, Version v) const {
  auto others = plan(v).receivers(from, v);
  std::erase_if(others, [&](Rank to) { return !takes(to, v); });
  return others;
}

std::vector<Rank> MixEngine::running_dry(Version v, std::int64_t versions) const {
  const auto workers = options_.node_of.size();
  // Who is gone may have given ahead of what it took, or taken what comes after its last: it is asked no more.
  for (const auto& [rank, absences] : gone_) {
    const Absence& last = absences.back();
    v = last.until < kForEver ? std::max(v, last.until.next())
                              : std::max({v, last.contributed.next(), last.mixed.next()});
  }
  std::vector<std::set<std::size_t>> gives_to(workers);
  for (std::size_t from = 0; from < workers; ++from) {
    for (std::int64_t k = 0; k < versions; ++k) {
      const Version at{v.value + k};
      const Rank rank{static_cast<std::int32_t>(from)};
      if (!gives(rank, at)) break;
      for (const Rank to : receivers(rank, at)) gives_to[from].insert(static_cast<std::size_t>(to.value));
    }
  }
  const auto reached_from = [&](std::size_t start) {
    std::set<std::size_t> reached;
    std::vector<std::size_t> next{start};
    while (!next.empty()) {
      const auto at = next.back();
      next.pop_back();
      if (!reached.insert(at).second) continue;
      next.insert(next.end(), gives_to[at].begin(), gives_to[at].end());
    }
    return reached;
  };
  std::vector<std::set<std::size_t>> reached;
  for (std::size_t from = 0; from < workers; ++from) reached.push_back(reached_from(from));
  std::vector<Rank> dry;
  for (std::size_t from = 0; from < workers; ++from)
    if (std::any_of(reached[from].begin(), reached[from].end(), [&](auto to) { return !reached[to].contains(from); }))
      dry.emplace_back(static_cast<std::int32_t>(from));
  return dry;
}

std::string MixEngine::fingerprint() const {
  std::ostringstream s;
  for (const auto& [from, plan] : plans_) s << 'p' << from.value;
  for (const auto& [key, readers] : held_) s << 'h' << key.version.value << '.' << key.rank.value << '=' << readers;
  for (const auto& [rank, v] : contributed_) s << 'c' << rank.value << '=' << v.value;
  for (const auto& [rank, wanted] : wanted_)
    s << 'w' << rank.value << '=' << wanted.version.value << ':' << wanted.missing.value_or(Rank{-1}).value;
  for (const auto& [rank, absences] : gone_)
    for (const Absence& last : absences)
      s << 'g' << rank.value << '=' << last.contributed.value << ',' << last.mixed.value << ',' << last.until.value;
  for (const auto& [rank, versions] : back_)
    for (const Version v : versions) s << 'b' << rank.value << '=' << v.value;
  for (const auto& [rank, last] : gone_again_)
    s << 'a' << rank.value << '=' << last.contributed.value << ',' << last.mixed.value;
  return s.str();
}

/// Local workers whose rows take from it, itself included.
std::vector<Rank> MixEngine::readers_of(Rank from, Version v) const {
  auto readers = receivers(from, v);
  readers.push_back(from);
  std::erase_if(readers, [&](Rank to) { return !is_local(to); });
  return readers;
}

void MixEngine::mix_if_ready(Rank rank, Actions& out) {
  const auto it = wanted_.find(rank);
  if (it == wanted_.end()) return;
  auto& [v, missing] = it->second;
  if (missing && gives(*missing, v) && !held_.contains({v, *missing})) return;
  auto shares = row(rank, v);
  const auto absent = std::find_if(shares.begin(), shares.end(), [this, at = v](const Share& share) {
    return !held_.contains({at, share.from});
  });
  if (absent != shares.end()) {
    missing = absent->from;
    return;
  }
  out.push_back(Mix{rank, v, std::move(shares)});
  wanted_.erase(it);
}

}  // namespace paceline::scheduler
