#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler/rounds/outer_model.h"
#include "scheduler/rounds/round_engine.h"
#include "scheduler/shell/workplace.h"

namespace paceline::scheduler {

/// What workers get that were late for a round: their own model merged with a result of their group, the newest or the
/// one that they missed; the outer model as it is, where there is one; a mean gradient as it is.
class LateMerges {
 public:
  LateMerges(Workplace& work, const std::optional<OuterModel>& outer) : work_(work), outer_(outer) {}

  /// The sum of so many contributions to v, with which these will merge; where it is to be put.
  std::byte* keep(Version v, const std::vector<Rank>& late, std::int32_t contributions);
  /// What is in the result of v, with which these will merge.
  void note(Version v, const std::vector<Rank>& late, const Contents& contents);
  void forget(Rank rank);
  /// Without those whose workers are gone.
  void forget_gone();
  /// `missed`: the round that the worker was late for. `members`: of the newest average of all.
  collective::Reduction prepare(const RoundEngine::Merge& what, const Round& missed, std::int32_t members);
  void finish(const RoundEngine::Merge& what);

 private:
  struct Kept {
    std::vector<std::byte> sum;
    std::int32_t contributions = 0;
  };
  using KeptOf = std::map<Version, std::shared_ptr<const Kept>>;

  collective::Reduction to_window(const RoundEngine::Merge& what, WorkerWindows::Member& member,
                                  std::vector<const void*> inputs, double divisor, std::int32_t members);

  Workplace& work_;
  const std::optional<OuterModel>& outer_;
  std::map<Rank, KeptOf> kept_;
  std::map<Rank, std::map<Version, Contents>> contents_;
  bool has_result_ = false;  ///< In progress, in the worker's window.
};

}  // namespace paceline::scheduler
