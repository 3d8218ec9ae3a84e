#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "algorithms/simulate/job.h"

/// What tests ask of a simulated job's rows.
namespace paceline::sim {

using simulate::Outcome;
using simulate::Row;
using simulate::Vector;

/// How many random jobs: fewer under the sanitizers.
inline unsigned jobs(unsigned in_release) {
#ifdef NDEBUG
  return in_release;
#else
  return std::max(8U, in_release / 6);
#endif
}

inline double tolerance(double value) { return 1e-9 * std::max(1.0, std::abs(value)); }

inline Vector mean(const std::vector<Vector>& models) {
  Vector sum(models[0].size(), 0.0);
  for (const Vector& x : models) {
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += x[k] / static_cast<double>(models.size());
  }
  return sum;
}

/// Sum of the squared distances to the mean.
inline double distance(const std::vector<Vector>& models) {
  const Vector middle = mean(models);
  double sum = 0;
  for (const Vector& x : models) {
    for (std::size_t k = 0; k < x.size(); ++k) sum += (x[k] - middle[k]) * (x[k] - middle[k]);
  }
  return sum;
}

inline std::map<Version, std::vector<Row>> by_step(const Outcome& outcome) {
  std::map<Version, std::vector<Row>> steps;
  for (const Row& row : outcome.rows) steps[row.step].push_back(row);
  return steps;
}

inline std::vector<Vector> models_of(const std::vector<Row>& rows) {
  std::vector<Vector> models;
  for (const Row& row : rows) models.push_back(row.model);
  return models;
}

inline void expect_near(const Vector& x, const Vector& expected, const std::string& at) {
  ASSERT_EQ(x.size(), expected.size()) << at;
  for (std::size_t k = 0; k < x.size(); ++k) ASSERT_NEAR(x[k], expected[k], tolerance(expected[k])) << at;
}

}  // namespace paceline::sim
