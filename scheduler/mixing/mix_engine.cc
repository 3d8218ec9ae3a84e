#include "scheduler/mixing/mix_engine.h"

#include <algorithm>
#include <set>

#include "runtime/base/check.h"

namespace paceline::scheduler {

MixEngine::MixEngine(Options options, std::unique_ptr<const MixPlan> plan)
    : options_(std::move(options)), plan_(std::move(plan)) {
  PACELINE_CHECK(plan_ != nullptr && !options_.node_of.empty(), "a mix engine needs a plan and workers");
}

MixEngine::Actions MixEngine::on_contribution(Rank from, Version v) {
  Actions out;
  if (from.value < 0 || static_cast<std::size_t>(from.value) >= options_.node_of.size()) return out;
  const auto [last, is_first] = contributed_.try_emplace(from, v);
  if (!is_first && v <= last->second) return out;
  last->second = v;
  if (is_local(from)) {
    std::set<NodeId> others;
    for (Rank to : plan_->receivers(from, v)) {
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
  wanted_[rank] = v;
  mix_if_ready(rank, out);
  return out;
}

MixEngine::Actions MixEngine::on_mixed(Rank rank, Version v) {
  Actions out;
  for (const Share& share : row_of(rank, v)) {
    const auto it = held_.find({v, share.from});
    PACELINE_CHECK(it != held_.end(), "what was mixed had been held");
    if (--it->second > 0) continue;
    held_.erase(it);
    out.push_back(Release{share.from, v});
  }
  return out;
}

MixEngine::Actions MixEngine::on_gone(Rank rank, Version last) {
  Actions out;
  gone_after_.try_emplace(rank, last);
  wanted_.erase(rank);
  // It takes no more shares itself: contributions to versions that it will not mix have one reader less.
  for (auto it = held_.begin(); it != held_.end();) {
    const auto receivers = plan_->receivers(it->first.rank, it->first.version);
    const bool reads = is_local(rank) && it->first.version > last &&
                       std::find(receivers.begin(), receivers.end(), rank) != receivers.end();
    if (reads && --it->second == 0) {
      out.push_back(Release{it->first.rank, it->first.version});
      it = held_.erase(it);
    } else {
      ++it;
    }
  }
  std::vector<Rank> waiting;
  for (const auto& [reader, v] : wanted_) waiting.push_back(reader);
  for (Rank reader : waiting) mix_if_ready(reader, out);
  return out;
}

bool MixEngine::ready(Rank rank, Version v) const {
  const auto row = row_of(rank, v);
  return std::all_of(row.begin(), row.end(), [&](const Share& share) { return held_.contains({v, share.from}); });
}

bool MixEngine::is_gone(Rank rank, Version v) const {
  const auto it = gone_after_.find(rank);
  return it != gone_after_.end() && v > it->second;
}

std::vector<Share> MixEngine::row_of(Rank rank, Version v) const {
  auto row = plan_->row(rank, v);
  if (gone_after_.empty()) return row;
  std::erase_if(row, [&](const Share& share) { return is_gone(share.from, v); });
  for (Rank to : plan_->receivers(rank, v)) {
    if (!is_gone(to, v)) continue;
    for (const Share& lost : plan_->row(to, v)) {
      if (lost.from != rank) continue;
      for (Share& own : row) {
        if (own.from == rank) own.weight += lost.weight;
      }
    }
  }
  return row;
}

/// Local workers whose rows take from it, itself included.
std::vector<Rank> MixEngine::readers_of(Rank from, Version v) const {
  auto readers = plan_->receivers(from, v);
  readers.push_back(from);
  std::erase_if(readers, [&](Rank to) { return !is_local(to) || is_gone(to, v); });
  return readers;
}

void MixEngine::mix_if_ready(Rank rank, Actions& out) {
  const auto it = wanted_.find(rank);
  if (it == wanted_.end() || !ready(rank, it->second)) return;
  const Version v = it->second;
  wanted_.erase(it);
  out.push_back(Mix{rank, v, row_of(rank, v)});
}

}  // namespace paceline::scheduler
