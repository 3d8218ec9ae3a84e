#pragma once

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/reference/reference.h"

/// What the reference's own tests share.
namespace paceline::reference {

using Kind = Strategy::Kind;
using Doubles = std::vector<double>;

/// Models of all workers after a step; NaN-free: a worker without that row is missing from the map.
inline std::map<int, double> models(const std::vector<Row>& rows, int step) {
  std::map<int, double> found;
  for (const Row& row : rows)
    if (row.step == step) found[row.worker] = row.model.at(0);
  return found;
}

inline Row row_of(const std::vector<Row>& rows, int worker, int step) {
  for (const Row& row : rows)
    if (row.worker == worker && row.step == step) return row;
  ADD_FAILURE() << "worker " << worker << " has no row for step " << step;
  return {};
}

inline void expect_models(const std::vector<Row>& rows, int step, const Doubles& expected) {
  const auto found = models(rows, step);
  ASSERT_EQ(found.size(), expected.size()) << "step " << step;
  for (const auto& [worker, model] : found)
    EXPECT_NEAR(model, expected[static_cast<std::size_t>(worker)], 1e-12) << "step " << step;
}

inline Strategy wagma(int group, int sync, bool skip = false, double grace_s = 0) {
  return {.kind = Kind::wagma, .period = sync, .group = group, .skip = skip, .grace_s = grace_s};
}

inline Job random_job(unsigned seed, Strategy strategy, int steps) {
  std::mt19937 random(seed);
  const auto number = [&](double least, double most) {
    return least + (most - least) * static_cast<double>(random()) / 4294967296.0;
  };
  Job job;
  for (int i = 0; i < 4; ++i) {
    job.workers.push_back({{number(0.5, 2), number(0.5, 2)}, {number(-5, 5), number(-5, 5)}});
    job.start.push_back({1, -1});
  }
  for (int t = 0; t < 17; ++t) {
    job.compute_s.emplace_back();
    for (int i = 0; i < 4; ++i) job.compute_s.back().push_back(0.25 * static_cast<double>(1 + random() % 8));
  }
  job.strategy = std::move(strategy);
  job.steps = steps;
  return job;
}

/// T4 from S: the workers start at 0, 3, 6, 9.
inline Job spread(Strategy strategy, int steps) {
  Job job = t4(std::move(strategy), steps);
  job.start = {{0}, {3}, {6}, {9}};
  return job;
}

/// Mixing only: nobody learns, worker i starts at i.
inline Job mixing_only(int workers, Strategy strategy, int steps) {
  Job job;
  for (int i = 0; i < workers; ++i) job.start.push_back({static_cast<double>(i)});
  job.workers.assign(job.start.size(), {{1}, {0}});
  job.compute_s = {Doubles(job.start.size(), 1)};
  job.strategy = std::move(strategy);
  job.lr = 0;
  job.steps = steps;
  return job;
}

inline std::vector<int> group_of(const std::vector<Row>& rows, int worker, int step) {
  return row_of(rows, worker, step).group;
}

inline void expect_same(const std::vector<Row>& a, const std::vector<Row>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    EXPECT_EQ(a[k].worker, b[k].worker);
    EXPECT_EQ(a[k].step, b[k].step);
    EXPECT_EQ(a[k].time_s, b[k].time_s);
    EXPECT_EQ(a[k].group, b[k].group);
    EXPECT_EQ(a[k].fresh, b[k].fresh);
    for (std::size_t d = 0; d < a[k].model.size(); ++d) EXPECT_NEAR(a[k].model[d], b[k].model[d], 1e-9);
  }
}

}  // namespace paceline::reference
