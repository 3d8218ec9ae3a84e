#pragma once

#include <vector>

#include "runtime/base/ids.h"

namespace paceline::scheduler {

/// One term of a mixing: `weight` times what `from` contributes.
struct Share {
  Rank from;
  double weight = 0;

  bool operator==(const Share&) const = default;
};

/// Who mixes with whom after iteration v: the rows of a mixing matrix W (x_i becomes the sum of W_ij x_j over j). Pure
/// and deterministic: every agent has its own copy and gets the same answers. Versions count from 0.
class MixPlan {
 public:
  virtual ~MixPlan() = default;

  /// Row `to` of version v, by rank; its own share is always there, weights of others are not 0. {{to, 1}}: it mixes
  /// with nobody.
  virtual std::vector<Share> row(Rank to, Version v) const = 0;
  /// Everybody else whose row of version v takes from `from`, by rank: the transpose of row().
  virtual std::vector<Rank> receivers(Rank from, Version v) const = 0;
};

}  // namespace paceline::scheduler
