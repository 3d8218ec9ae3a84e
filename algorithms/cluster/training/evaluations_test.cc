#include "algorithms/cluster/training/evaluations.h"

#include <gtest/gtest.h>

#include <cmath>

namespace paceline::cluster {
namespace {

TEST(EvaluationsTest, TheFirstOfEqualsIsTheBest) {
  Evaluations sut({});
  EXPECT_TRUE(sut.on_value(10, 0.5).is_best);
  EXPECT_FALSE(sut.on_value(20, 0.5).is_best);
  EXPECT_FALSE(sut.on_value(30, 0.4).is_best);
  EXPECT_TRUE(sut.on_value(40, 0.6).is_best);
  EXPECT_TRUE(sut.on_value(50, 0.7).stop.empty()) << "nothing was asked for";
}

TEST(EvaluationsTest, ATargetEndsTheJob) {
  Evaluations sut({.target = 0.8});
  EXPECT_FALSE(sut.on_value(10, 0.79).reached);
  const auto outcome = sut.on_value(20, 0.8);
  EXPECT_TRUE(outcome.reached);
  EXPECT_EQ(outcome.stop, "the target was reached");
}

TEST(EvaluationsTest, SoManyThatAreNoBetterEndIt) {
  Evaluations sut({.metric = {"perplexity", minimise}, .early_stopping = 2});
  EXPECT_EQ(sut.on_value(10, 35).stop, "");
  EXPECT_EQ(sut.on_value(20, 36).stop, "");
  EXPECT_EQ(sut.on_value(30, 34.5).stop, "") << "a better one begins anew";
  EXPECT_EQ(sut.on_value(40, 34.5).stop, "");
  EXPECT_EQ(sut.on_value(50, std::nan("")).stop, "no better perplexity than 34.5 (update 30) in 2 evaluations");
}

TEST(EvaluationsTest, WithoutAMetricNothingIsBestAndNothingEnds) {
  Evaluations sut({.target = 0.1, .early_stopping = 1});
  for (int update = 1; update < 9; ++update) {
    const auto outcome = sut.on_value(update, std::nan(""));
    EXPECT_FALSE(outcome.is_best || outcome.reached);
    EXPECT_EQ(outcome.stop, "");
  }
}

}  // namespace
}  // namespace paceline::cluster
