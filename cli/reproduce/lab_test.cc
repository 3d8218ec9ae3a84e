#include "cli/reproduce/lab.h"

#include <gtest/gtest.h>

#include <cmath>

namespace paceline::cli::reproduce {
namespace {

TEST(LabTest, AQuickLabTakesATenthOfTheStepsButTwenty) {
  EXPECT_EQ(Lab(false).steps(500), 500);
  EXPECT_EQ(Lab(true).steps(500), 50);
  EXPECT_EQ(Lab(true).steps(50), 20);
}

TEST(LabTest, ACurveHasALevelAndTimesAtWhichItIsLow) {
  const PlotLine curve{"", {{0, 8}, {1, 4}, {2, 2}, {3, 1}}};
  EXPECT_EQ(level(curve), 1);
  EXPECT_EQ(time_to(curve, 3), 2);
  EXPECT_TRUE(std::isinf(time_to(curve, .5)));
}

TEST(LabTest, WhoNeverComesToALossGainsNothingByIt) {
  const PlotLine quick{"", {{0, 8}, {1, 2}}}, slow{"", {{0, 8}, {2, 4}, {6, 2}}}, never{"", {{0, 8}, {4, 3}}};
  EXPECT_EQ(sooner(slow, quick, 2), 6);
  EXPECT_EQ(sooner(never, quick, 2), 4);
  EXPECT_EQ(sooner(quick, never, 2), 0);
  EXPECT_EQ(sooner(never, never, 2), 0);
}

TEST(LabTest, ModelsThatAreEqualAreNotApart) {
  EXPECT_EQ(consensus({{1, 2}, {1, 2}}), 0);
  EXPECT_EQ(consensus({{0, 2}, {4, 2}}), 2);
}

TEST(LabTest, AllreduceTakesTheLongestTime) {
  const Lab lab(true);
  auto job = job_of(nothing(2), "allreduce", 20, 1, uniform(1, 2));
  job.compute_s = {{1, 3}, {2, 1}};
  EXPECT_DOUBLE_EQ(step_s(job, lab.run(job)), 2.5);
  EXPECT_EQ(job_of(nothing(2), "allreduce", 3, 7, exponential()).compute_s,
            job_of(nothing(2), "wagma", 3, 7, exponential()).compute_s);
}

TEST(LabTest, AProblemIsSeenThroughItsSourceAndScale) {
  const auto inner = simulate::make_quadratic({{{1}, {0}}, {{1}, {5}}});
  const Seen sut(
      inner, [](Rank rank, Version) { return Rank{1 - rank.value}; },
      [](Version step) { return step.value == 0 ? 1. : .5; });
  EXPECT_EQ(sut.gradient(Rank{0}, Version{0}, {1}).first, simulate::Vector{-4});
  EXPECT_EQ(sut.gradient(Rank{1}, Version{3}, {1}).first, simulate::Vector{.5});
  EXPECT_EQ(sut.objective({0}), inner->objective({0}));
}

}  // namespace
}  // namespace paceline::cli::reproduce
