#include "algorithms/simulate/figures.h"

#include <gtest/gtest.h>

namespace paceline::simulate {
namespace {

class FiguresTest : public testing::Test {
 protected:
  FiguresTest() {
    job.problem = make_quadratic(workers);
    job.start = {{0}};
    job.steps = 2;
    outcome.rows = {row(0, 0, 1, 1, true), row(1, 0, 2, 3, false), row(0, 1, 4, 2, true)};
    outcome.summary = {.model = {3},
                       .time = from_seconds(4),
                       .messages = 5,
                       .bytes = 40,
                       .waited = {from_seconds(1), from_seconds(0)}};
  }

  static Row row(std::int32_t worker, std::int64_t step, double time, double model, bool fresh) {
    Row made{};
    made.worker = Rank{worker};
    made.step = Version{step};
    made.time = from_seconds(time);
    made.model = {model};
    made.fresh = fresh;
    return made;
  }

  std::vector<Quadratic> workers = {{{1}, {1}}, {{3}, {5}}};
  Job job;
  Outcome outcome;
};

TEST_F(FiguresTest, CountWhatWasDoneWaitedForAndLate) {
  const Figures figures = figures_of(job, outcome, 0, {.of_row = 2, .of_step = 2});
  EXPECT_EQ(figures.virtual_s, 4);
  EXPECT_EQ(figures.batches, 6);
  EXPECT_EQ(figures.batches_per_s, 1.5);
  EXPECT_EQ(figures.share_done, 0.75);
  EXPECT_EQ(figures.waited, 1.0 / 8);
  EXPECT_EQ(figures.late, 1.0 / 3);
  EXPECT_EQ(figures.bytes, 40);
}

TEST_F(FiguresTest, TheCurveIsOfTheMeanModelAboveTheLowest) {
  const Vector best = optimum(workers);
  EXPECT_EQ(best, Vector{4});
  const double lowest = job.problem->objective(best);
  const Figures figures = figures_of(job, outcome, lowest, {});
  ASSERT_EQ(figures.curve.size(), kCurvePoints + 1u);
  EXPECT_EQ(figures.curve.front(), std::pair(0.0, job.problem->objective({0}) - lowest));
  EXPECT_EQ(figures.curve[kCurvePoints / 2], std::pair(2.0, job.problem->objective({2}) - lowest));
  EXPECT_EQ(figures.curve.back(), std::pair(4.0, job.problem->objective({2.5}) - lowest));
  EXPECT_EQ(figures.loss, job.problem->objective({3}) - lowest);
  EXPECT_EQ(figures.apart, 0.5);
}

TEST_F(FiguresTest, TheDeadHaveNoSay) {
  job.failures = {{Rank{0}, 3, std::nullopt}};
  const Figures figures = figures_of(job, outcome, 0, {});
  EXPECT_EQ(figures.curve.back().second, job.problem->objective({3}));
  EXPECT_EQ(figures.loss, job.problem->objective({3}));
  EXPECT_EQ(figures.apart, 0);
}

}  // namespace
}  // namespace paceline::simulate
