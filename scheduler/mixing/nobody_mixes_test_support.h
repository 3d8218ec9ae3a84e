#pragma once

#include <vector>

#include "scheduler/mixing/mix_plan.h"

namespace paceline::scheduler {

/// Everybody alone.
class NobodyMixes : public MixPlan {
 public:
  std::vector<Share> row(Rank to, Version) const override { return {{to, 1}}; }
  std::vector<Rank> receivers(Rank, Version) const override { return {}; }
};

}  // namespace paceline::scheduler
