#include "algorithms/job/metric.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/base/json.h"

namespace paceline::job {
namespace {

const Metric kPerplexity{"perplexity", minimise};

TEST(MetricTest, AnAccuracyIsAPercentageAndOtherValuesAreWhatTheyAre) {
  EXPECT_EQ(text({}, 0.8812), "88.1 %");
  EXPECT_EQ(text(kPerplexity, 35.25), "35.25");
  EXPECT_EQ(text({"return", maximise, "points"}, -212), "-212 points");
  EXPECT_EQ(text({"error rate", minimise, "%"}, 0.05), "5.0 %");
  EXPECT_EQ(text({"accuracy", maximise, "words"}, 12), "12 words");
}

TEST(MetricTest, WhatIsBetterIsTheJobsToSay) {
  EXPECT_TRUE(is_better({}, 0.9, 0.8));
  EXPECT_FALSE(is_better({}, 0.8, 0.8));
  EXPECT_TRUE(is_better(kPerplexity, 30, 35));
  EXPECT_FALSE(is_better(kPerplexity, 35, 30));
  EXPECT_FALSE(is_better(kPerplexity, std::nan(""), 30));
}

TEST(MetricTest, TargetsAreReachedFromTheirSide) {
  EXPECT_TRUE(reaches({}, 0.88, 0.88));
  EXPECT_FALSE(reaches({}, 0.87, 0.88));
  EXPECT_TRUE(reaches(kPerplexity, 34.9, 35));
  EXPECT_FALSE(reaches(kPerplexity, 35.1, 35));
  EXPECT_TRUE(reaches({"return", maximise}, -100, -110));
  EXPECT_FALSE(reaches({}, std::nan(""), 0.1));
}

TEST(MetricTest, TravelsInTheJobsJson) {
  for (const Metric& metric : {kPerplexity, Metric{"return", maximise, "points"}})
    EXPECT_EQ(metric_of({{"metric", to_json(metric)}}), metric);
  EXPECT_EQ(text(metric_of({{"metric", to_json(Metric())}}), 0.5), "50.0 %");
  EXPECT_EQ(metric_of(nlohmann::json::object()), Metric());
  EXPECT_EQ(target_of({{"target", -110}}), -110.0);
  EXPECT_EQ(target_of({{"target", nullptr}}), std::nullopt);
  EXPECT_EQ(target_of(nlohmann::json::object()), std::nullopt);
}

}  // namespace
}  // namespace paceline::job
