// How far workers drift apart: unit noise is added to every worker before each mixing; what is measured is the variance
// that remains after it, in the long run. It orders the strategies of WAGMA-SGD's ablations (sec. V) as their accuracy
// does.
#include <gtest/gtest.h>

#include <functional>

#include "algorithms/groups.h"
#include "algorithms/topology/mixing.h"
#include "algorithms/topology/mixing_test_support.h"

namespace paceline::algorithms {
namespace {

using Rows = std::function<std::vector<scheduler::Share>(Rank, Version)>;

Rows rows_of(MixPlanPtr plan) {
  return [plan = std::shared_ptr<scheduler::MixPlan>(std::move(plan))](Rank to, Version v) { return plan->row(to, v); };
}

/// Butterfly groups of `size`, those of iteration 0 for ever where `fixed`; all average every `sync` steps (0: never).
Rows wagma(std::int32_t workers, std::int32_t size, std::int64_t sync, bool fixed = false) {
  return [=](Rank to, Version v) {
    const bool all = sync > 0 && (v.value + 1) % sync == 0;
    const auto group = butterfly_group_of(workers, all ? workers : size, fixed ? Version(0) : v, to);
    std::vector<scheduler::Share> row;
    for (const Rank from : group) row.push_back({from, 1.0 / static_cast<double>(group.size())});
    return row;
  };
}

/// Mean over the last `period` of `steps` versions of the mean over i of E|x_i - mean|^2.
double consensus_variance(const Rows& rows, std::int32_t workers, std::int64_t steps, std::int64_t period) {
  Dense covariance(at(workers), Vector(at(workers)));  // Of the differences from the mean.
  double sum = 0;
  for (std::int64_t v = 0; v < steps; ++v) {
    for (std::int32_t i = 0; i < workers; ++i) {
      for (double& entry : covariance[at(i)]) entry -= 1.0 / workers;
      covariance[at(i)][at(i)] += 1;
    }
    for (int side = 0; side < 2; ++side) {  // W (W C)' = W C W'.
      Dense product(at(workers), Vector(at(workers)));
      for (std::int32_t i = 0; i < workers; ++i)
        for (const auto& [from, weight] : rows(Rank(i), Version(v)))
          for (std::size_t j = 0; j < product.size(); ++j) product[j][at(i)] += weight * covariance[at(from.value)][j];
      covariance = std::move(product);
    }
    if (v >= steps - period)
      for (std::int32_t i = 0; i < workers; ++i) sum += covariance[at(i)][at(i)];
  }
  return sum / static_cast<double>(workers * period);
}

TEST(ConsensusVarianceTest, Of64WorkersIsThatOfTheSpecification) {
  EXPECT_NEAR(consensus_variance(wagma(64, 8, 10), 64, 40, 20), .0984, 1e-4);
  EXPECT_NEAR(consensus_variance(wagma(64, 8, 0), 64, 40, 20), 1.0 / 8 - 1.0 / 64, 1e-9);
  EXPECT_NEAR(consensus_variance(wagma(64, 4, 10), 64, 60, 30), .2484, 1e-4);
  EXPECT_NEAR(consensus_variance(wagma(64, 8, 10, true), 64, 40, 20), .4922, 1e-4);
  EXPECT_NEAR(consensus_variance(wagma(64, 1, 10), 64, 40, 20), 4.4297, 1e-4);
  EXPECT_NEAR(consensus_variance(rows_of(directed_mixing(64, 1, Hops::pow2).value()), 64, 60, 6), .8906, 1e-4);
  EXPECT_NEAR(consensus_variance(rows_of(directed_mixing(64, 2, Hops::pow2).value()), 64, 60, 6), .562, 1e-3);
  EXPECT_NEAR(consensus_variance(rows_of(directed_mixing(64, 2, Hops::base_p1).value()), 64, 60, 4), .441, 1e-3);
  EXPECT_NEAR(consensus_variance(rows_of(ring_mixing(64)), 64, 1500, 1), 7.443, 2e-3);
}

TEST(ConsensusVarianceTest, Of16WorkersIsThatOfTheSpecification) {
  EXPECT_NEAR(consensus_variance(wagma(16, 4, 8), 16, 32, 16), .1641, 1e-4);
  EXPECT_NEAR(consensus_variance(wagma(16, 2, 8), 16, 32, 16), .5625, 1e-4);
  EXPECT_NEAR(consensus_variance(wagma(16, 4, 8, true), 16, 32, 16), .6562, 1e-4);
  EXPECT_NEAR(consensus_variance(wagma(16, 1, 8), 16, 32, 16), 3.281, 1e-3);
  EXPECT_NEAR(consensus_variance(rows_of(directed_mixing(16, 1, Hops::pow2).value()), 16, 60, 4), .6875, 1e-4);
  EXPECT_NEAR(consensus_variance(rows_of(directed_mixing(16, 2, Hops::pow2).value()), 16, 60, 4), .3933, 1e-4);
  EXPECT_NEAR(consensus_variance(rows_of(ring_mixing(16)), 16, 300, 1), 1.472, 1e-3);
}

}  // namespace
}  // namespace paceline::algorithms
