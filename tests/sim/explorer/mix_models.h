#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "tests/sim/explorer/mix_state.h"
#include "tests/sim/explorer/model_parts.h"

namespace paceline::explorer {

/// Column-stochastic: everybody keeps a part and sends the rest, in equal shares, to `hops` of the version. With the
/// same number of hops for all, rows add up to 1, too.
class Pushes final : public MixPlan {
 public:
  using Hops = std::vector<std::vector<std::int32_t>>;
  Pushes(std::int32_t workers, Hops hops) : workers_(workers), hops_(std::move(hops)) {}

  std::vector<Share> row(Rank to, Version v) const override {
    std::vector<Share> shares;
    for (Rank from{0}; from.value < workers_; ++from.value) {
      const auto receivers_of = receivers(from, v);
      const double each = 1.0 / static_cast<double>(receivers_of.size() + 1);
      const bool takes = std::count(receivers_of.begin(), receivers_of.end(), to) > 0;
      if (from == to || takes) shares.push_back({from, each});
    }
    return shares;
  }
  std::vector<Rank> receivers(Rank from, Version v) const override {
    std::vector<Rank> all;
    for (const auto hop : hops_[static_cast<std::size_t>(v.value) % hops_.size()])
      all.push_back(Rank{(from.value + hop) % workers_});
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  std::int32_t workers_;
  Hops hops_;
};

inline auto pushes(std::int32_t workers, Pushes::Hops hops) {
  return [=]() -> std::unique_ptr<MixPlan> { return std::make_unique<Pushes>(workers, hops); };
}

/// Three workers on two agents, or three.
inline MixModel of_three(const char* name, Pushes::Hops hops, std::int32_t nodes) {
  return {name, pushes(3, std::move(hops)), nodes == 2 ? on({0, 0, 1}) : on({0, 1, 2}), nodes, Version{1}};
}
inline MixModel ring(std::int32_t nodes = 2) { return of_three("ring of 3", {{1}}, nodes); }
/// Everybody keeps what it has.
inline MixModel apart(std::int32_t nodes = 2) { return of_three("3 apart", {{}}, nodes); }
/// The mean of all, where all must have the same contributions.
inline MixModel alike(std::int32_t nodes = 2) {
  MixModel model = of_three("alike", {{1, 2}}, nodes);
  model.columns_add_up = false;
  model.alike = true;
  return model;
}

/// Batches over a ring, or a mean.
inline MixModel batches(MixModel model, std::int32_t n, BatchEngine::Weight weight = BatchEngine::Weight::share,
                        bool drops = true) {
  model.columns_add_up = false;
  model.batches = n;
  model.weight = weight;
  model.drops = drops;
  model.name = "batches, " + model.name + (weight == BatchEngine::Weight::of_all ? ", weighed by all" : "") +
               (drops ? "" : ", waits");
  return model;
}

}  // namespace paceline::explorer
