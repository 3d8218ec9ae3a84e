#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "scheduler/mixing/mix_plan.h"

namespace paceline::algorithms {

using Vector = std::vector<double>;
using Dense = std::vector<Vector>;

inline std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

/// W of one version.
inline Dense dense(const scheduler::MixPlan& plan, std::int32_t workers, std::int64_t v) {
  Dense w(at(workers), Vector(at(workers)));
  for (std::int32_t to = 0; to < workers; ++to)
    for (const auto& share : plan.row(Rank(to), Version(v))) w[at(to)][at(share.from.value)] += share.weight;
  return w;
}

inline Vector mixed(const scheduler::MixPlan& plan, const Vector& x, std::int64_t v) {
  Vector result;
  for (std::size_t to = 0; to < x.size(); ++to) {
    double sum = 0;
    for (const auto& share : plan.row(Rank(static_cast<std::int32_t>(to)), Version(v)))
      sum += share.weight * x[at(share.from.value)];
    result.push_back(sum);
  }
  return result;
}

inline void expect_near(const Vector& actual, const Vector& expected, double tolerance = 1e-12) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << "entry " << i;
}

enum class Sums { columns, both };

/// What every plan promises for one version: rows by rank with their own share and no other weight of 0, receivers()
/// the transpose of row(), columns (and rows) that sum to 1.
inline void expect_sound(const scheduler::MixPlan& plan, std::int32_t workers, std::int64_t v, Sums sums) {
  SCOPED_TRACE("P = " + std::to_string(workers) + ", version " + std::to_string(v));
  std::vector<std::vector<Rank>> transpose(at(workers));
  Vector columns(at(workers));
  for (std::int32_t to = 0; to < workers; ++to) {
    const auto row = plan.row(Rank(to), Version(v));
    EXPECT_EQ(std::adjacent_find(row.begin(), row.end(), [](auto& a, auto& b) { return a.from >= b.from; }), row.end());
    double sum = 0;
    bool names_itself = false;
    for (const auto& [from, weight] : row) {
      ASSERT_TRUE(from.value >= 0 && from.value < workers);
      sum += weight;
      columns[at(from.value)] += weight;
      if (from.value == to) {
        names_itself = true;
      } else {
        EXPECT_GT(weight, 0);
        transpose[at(from.value)].push_back(Rank(to));
      }
    }
    EXPECT_TRUE(names_itself);
    if (sums == Sums::both) {
      EXPECT_NEAR(sum, 1, 1e-12);
    }
  }
  expect_near(columns, Vector(at(workers), 1.0));
  for (std::int32_t from = 0; from < workers; ++from)
    EXPECT_EQ(plan.receivers(Rank(from), Version(v)), transpose[at(from)]) << "rank " << from;
}

/// Whether what rank 0 knows can reach everybody within the versions 0..versions-1, over and over.
inline bool is_connected(const scheduler::MixPlan& plan, std::int32_t workers, std::int64_t versions) {
  std::vector<bool> reached(at(workers));
  reached[0] = true;
  for (std::int32_t sweep = 0; sweep < workers; ++sweep)
    for (std::int64_t v = 0; v < versions; ++v)
      for (std::int32_t from = 0; from < workers; ++from)
        if (reached[at(from)])
          for (const Rank to : plan.receivers(Rank(from), Version(v))) reached[at(to.value)] = true;
  return std::all_of(reached.begin(), reached.end(), [](bool r) { return r; });
}

inline bool is_symmetric(const scheduler::MixPlan& plan, std::int32_t workers, std::int64_t v) {
  const auto w = dense(plan, workers, v);
  for (std::size_t i = 0; i < w.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (w[i][j] != w[j][i]) return false;
  return true;
}

}  // namespace paceline::algorithms
