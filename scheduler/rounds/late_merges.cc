#include "scheduler/rounds/late_merges.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace paceline::scheduler {

std::byte* LateMerges::keep(Version v, const std::vector<Rank>& late, std::int32_t contributions) {
  auto kept = std::make_shared<Kept>(Kept{std::vector<std::byte>(work_.windows.bytes()), contributions});
  for (const Rank rank : late) kept_[rank][v] = kept;
  return kept->sum.data();
}

void LateMerges::note(Version v, const std::vector<Rank>& late, const Contents& contents) {
  for (const Rank rank : late) contents_[rank][v] = contents;
}

void LateMerges::forget(Rank rank) {
  kept_.erase(rank);
  contents_.erase(rank);
}

void LateMerges::forget_gone() {
  const auto is_gone = [this](const auto& entry) {
    const auto* const member = work_.windows.find(entry.first);
    return member && member->gone;
  };
  std::erase_if(kept_, is_gone);
  std::erase_if(contents_, is_gone);
}

collective::Reduction LateMerges::to_window(const RoundEngine::Merge& what, WorkerWindows::Member& member,
                                            std::vector<const void*> inputs, double divisor, std::int32_t members) {
  auto reduction = work_.windows.reduction();
  const auto buffer = work_.begin_result(what.rank, member, what.own);
  if (!buffer) return reduction;
  has_result_ = true;
  member.window.tag(*buffer).members = members;
  reduction.inputs = std::move(inputs);
  reduction.outputs.push_back({member.window.data(*buffer).data(), 1.0 / divisor});
  return reduction;
}

collective::Reduction LateMerges::prepare(const RoundEngine::Merge& what, const Round& missed, std::int32_t members) {
  has_result_ = false;
  auto* const member = work_.windows.living(what.rank);
  if (!member) return work_.windows.reduction();
  if (outer_) return to_window(what, *member, {outer_->data()}, 1, members);
  auto& window = member->window;
  const bool merges = missed.payload != Payload::gradients;  // A mean gradient is taken as it is.
  const auto own = window.published() ? window.published() : window.sealed();
  if (merges ? !own : !missed.is_partial()) return work_.windows.reduction();
  // A worker that opened its share after the round has no result to merge with: it goes on with its own.
  std::vector<const void*> inputs;
  std::int32_t contributions = 0;
  const auto& kept = kept_[what.rank];
  if (const auto sum = kept.find(what.with); sum != kept.end()) {
    inputs.push_back(sum->second->sum.data());
    contributions = sum->second->contributions;
  } else if (const auto newest = window.latest()) {
    inputs.push_back(window.data(*newest).data());
    contributions = std::max(1, window.tag(*newest).divisor);
  }
  if (merges) inputs.push_back(window.data(*own).data());
  return to_window(what, *member, std::move(inputs), merges ? contributions + 1.0 : 1.0, members);
}

void LateMerges::finish(const RoundEngine::Merge& what) {
  if (has_result_) work_.windows.at(what.rank).window.deliver();
  if (outer_) work_.ledger.on_replaced(what.rank);
  auto& contents = contents_[what.rank];
  if (const auto taken = outer_ && !contents.empty() ? std::prev(contents.end()) : contents.find(what.with);
      taken != contents.end())
    work_.ledger.on_taken(what.rank, taken->second);
  contents.erase(contents.begin(), contents.upper_bound(what.with));
  auto& kept = kept_[what.rank];
  kept.erase(kept.begin(), kept.upper_bound(what.with));
  ++work_.counters.late_merges;
  work_.trace("merge", what.own);
}

}  // namespace paceline::scheduler
