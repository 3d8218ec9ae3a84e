#include "algorithms/simulate/distributions.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

namespace paceline::simulate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> draws(const char* text, int count = 40'000) {
  const auto distribution = parse_distribution(text);
  EXPECT_TRUE(distribution) << distribution.error().text;
  std::vector<double> times;
  for (int k = 0; k < count; ++k) times.push_back(draw(*distribution, 1, Rank{k % 4}, k / 4));
  std::sort(times.begin(), times.end());
  return times;
}
double mean(const std::vector<double>& times) {
  double sum = 0;
  for (double time : times) sum += time;
  return sum / static_cast<double>(times.size());
}
double quantile(const std::vector<double>& times, double share) {
  return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
}

TEST(Distributions, ConstantIsConstant) { EXPECT_THAT(draws("constant(500ms)", 3), ElementsAre(0.5, 0.5, 0.5)); }

TEST(Distributions, ExponentialHasItsMeanAndQuantiles) {
  const auto times = draws("exponential(2s)");
  EXPECT_NEAR(mean(times), 2, 0.04);
  EXPECT_NEAR(quantile(times, 0.5), 2 * std::log(2), 0.04);
  EXPECT_NEAR(quantile(times, 0.9), 2 * std::log(10), 0.12);
}

TEST(Distributions, UniformHasItsMeanAndEnds) {
  const auto times = draws("uniform(1s,3s)");
  EXPECT_NEAR(mean(times), 2, 0.02);
  EXPECT_NEAR(quantile(times, 0.25), 1.5, 0.03);
  EXPECT_GE(times.front(), 1);
  EXPECT_LE(times.back(), 3);
}

TEST(Distributions, LognormalHasItsMedianAndMean) {
  const auto times = draws("lognormal(2s,0.5)");
  EXPECT_NEAR(quantile(times, 0.5), 2, 0.03);
  EXPECT_NEAR(mean(times), 2 * std::exp(0.125), 0.03);
  EXPECT_NEAR(quantile(times, 0.8413), 2 * std::exp(0.5), 0.06);
}

TEST(Distributions, ParetoHasItsLeastMedianAndMean) {
  const auto times = draws("pareto(1s,3)");
  EXPECT_GE(times.front(), 1);
  EXPECT_NEAR(quantile(times, 0.5), std::cbrt(2), 0.01);
  EXPECT_NEAR(mean(times), 1.5, 0.03);
}

TEST(Distributions, TheSeedAloneSaysWhatIsDrawn) {
  const auto sut = *parse_distribution("exponential(1s)");
  EXPECT_EQ(draw(sut, 1, Rank{2}, 9), draw(sut, 1, Rank{2}, 9));
  EXPECT_NE(draw(sut, 1, Rank{2}, 9), draw(sut, 2, Rank{2}, 9));
  EXPECT_NE(draw(sut, 1, Rank{2}, 9), draw(sut, 1, Rank{1}, 9));
}

TEST(Distributions, WhatIsDrawnIsNeverLongerThanAJobMaySay) {
  for (double time : draws("pareto(1000s,0.1)", 1000)) EXPECT_LE(time, kTimeMost);
}

TEST(Distributions, AnErrorSaysWhichFormsThereAre) {
  for (const char* text :
       {"constant", "constant(0s)", "constant(1)", "normal(1s)", "uniform(2s,1s)", "uniform(1s)", "pareto(1s,0)",
        "pareto(1s,-1)", "lognormal(1s,x)", "constant(mean=1s)", "constant(1s", ""}) {
    EXPECT_FALSE(parse_distribution(text)) << text;
  }
  EXPECT_THAT(parse_distribution("normal(1s)").error().text, HasSubstr("lognormal(1s,0.5)"));
}

TEST(Trace, TheFileIsWhatStandsInParentheses) {
  EXPECT_EQ(traced_file("trace(/tmp/a b.txt)"), "/tmp/a b.txt");
  EXPECT_EQ(traced_file("constant(1s)"), std::nullopt);
}

TEST(Trace, OneTimeALineIsDrawnFromAtRandom) {
  const auto trace = read_trace("1\n\n  250ms \n0.5\r\n");
  ASSERT_TRUE(trace) << trace.error().text;
  EXPECT_THAT(trace->times_s, ElementsAre(ElementsAre(1, 0.25, 0.5)));
  double sum = 0;
  for (int k = 0; k < 3000; ++k) sum += draw(*trace, 1, Rank{1}, k) / 3000;
  EXPECT_NEAR(sum, 1.75 / 3, 0.02);
}

TEST(Trace, OfARunGivesEachWorkerItsOwnTimesInOrder) {
  const auto trace = read_trace(
      "{\"event\":\"memory\"}\n"
      "{\"event\":\"progress\",\"workers\":[{\"rank\":0,\"step\":0,\"compute_s\":0},{\"rank\":1,\"step\":0,\"compute_"
      "s\":0}]}\n"
      "{\"event\":\"progress\",\"workers\":[{\"rank\":0,\"step\":2,\"compute_s\":3},{\"rank\":1,\"step\":0,\"compute_"
      "s\":0.5}]}\n"
      "{\"event\":\"progress\",\"workers\":[{\"rank\":0,\"step\":3,\"compute_s\":4},{\"rank\":1,\"step\":1,\"compute_"
      "s\":5}]}\n");
  ASSERT_TRUE(trace) << trace.error().text;
  EXPECT_THAT(trace->times_s, ElementsAre(ElementsAre(1.5, 1.5, 1), ElementsAre(5)));
  EXPECT_EQ(draw(*trace, 1, Rank{0}, 2), 1);
  EXPECT_EQ(draw(*trace, 1, Rank{0}, 3), 1.5);
  EXPECT_EQ(draw(*trace, 1, Rank{3}, 7), 5);
}

TEST(Trace, AnErrorNamesTheLine) {
  EXPECT_THAT(read_trace("1\nx\n").error().text, HasSubstr("line 2: x; give a time"));
  EXPECT_THAT(read_trace("1\n-1\n").error().text, HasSubstr("line 2"));
  EXPECT_THAT(read_trace("").error().text, HasSubstr("no time"));
  EXPECT_THAT(read_trace("{\"event\":\"result\"}\n").error().text, HasSubstr("longer run"));
}

}  // namespace
}  // namespace paceline::simulate
