#include "cli/reproduce/verdict.h"

#include <gtest/gtest.h>

#include <limits>

namespace paceline::cli::reproduce {
namespace {

std::string verdict(const Spread& figure, const Bound& bound, Evidence evidence = Evidence::measured) {
  return in_words(verdict_of({{"", figure, bound}}, evidence));
}

TEST(VerdictTest, ASpreadSaysMeanLowestAndHighest) {
  EXPECT_EQ((Spread{{1, 2, 6}}).text(1), "3.0 (1.0 to 6.0)");
  EXPECT_EQ((Spread{{1.25}}).text(), "1.25");
}

TEST(VerdictTest, RatiosAreTakenSeedBySeed) {
  EXPECT_EQ((Spread{{2, 9}} / Spread{{1, 3}}).values, (std::vector<double>{2, 3}));
}

TEST(VerdictTest, NothingMeasuredIsNotTried) {
  EXPECT_EQ(verdict_of({}, Evidence::measured), Verdict::not_tried);
  EXPECT_EQ(verdict_of({}, Evidence::by_construction), Verdict::not_tried);
}

TEST(VerdictTest, ABoundThatIsJustMissedDoesNotHold) {
  EXPECT_EQ(verdict({{1.2}}, Bound::at_least(1.2)), "holds");
  EXPECT_EQ(verdict({{1.1999}}, Bound::at_least(1.2)), "does not hold");
  EXPECT_EQ(verdict({{1.05}}, Bound::at_most(1.05)), "holds");
  EXPECT_EQ(verdict({{1.0501}}, Bound::at_most(1.05)), "does not hold");
  EXPECT_EQ(verdict({{2.03}}, Bound::within(2, .02)), "does not hold");
  EXPECT_EQ(verdict({{1}}, Bound::above(1)), "does not hold");
  EXPECT_EQ(verdict({{1}}, Bound::below(1)), "does not hold");
}

TEST(VerdictTest, AMagnitudeIsOfTheMeanAndAnOrderOfEverySeed) {
  EXPECT_EQ(verdict({{1.0, 1.4}}, Bound::at_least(1.2)), "holds");
  EXPECT_EQ(verdict({{.99, 9}}, Bound::above(1)), "does not hold");
  EXPECT_EQ(verdict({{.1, 1.01}}, Bound::below(1)), "does not hold");
}

TEST(VerdictTest, ASpeedupNeedsFourFifthsOfThePapersGainAndEverySeed) {
  EXPECT_EQ(verdict({{1.8, 1.81}}, Bound::speedup(2)), "holds");
  EXPECT_EQ(verdict({{1.79, 1.79}}, Bound::speedup(2)), "does not hold");
  EXPECT_EQ(verdict({{.9, 9}}, Bound::speedup(2)), "does not hold");
}

TEST(VerdictTest, WhatIsNoNumberHoldsNothing) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  for (const Bound& bound : {Bound::at_least(0), Bound::at_most(0), Bound::above(0), Bound::below(0)})
    EXPECT_EQ(verdict({{none}}, bound), "does not hold");
}

TEST(VerdictTest, WeakEvidenceIsNamedAndCanFail) {
  EXPECT_EQ(verdict({{2}}, Bound::above(1), Evidence::by_construction), "holds by construction");
  EXPECT_EQ(verdict({{2}}, Bound::above(1), Evidence::fitted), "fitted");
  EXPECT_EQ(verdict({{.5}}, Bound::above(1), Evidence::by_construction), "does not hold");
  EXPECT_EQ(verdict({{.5}}, Bound::above(1), Evidence::fitted), "does not hold");
}

TEST(VerdictTest, EveryCheckOfAClaimMustKeepItsBound) {
  const Check good{"", {{2}}, Bound::above(1)}, bad{"", {{1}}, Bound::above(1)};
  EXPECT_EQ(verdict_of({good, good}, Evidence::measured), Verdict::holds);
  EXPECT_EQ(verdict_of({good, bad}, Evidence::measured), Verdict::does_not_hold);
}

TEST(VerdictTest, AnOrderIsReversedOnlyByEverySeed) {
  EXPECT_TRUE(Bound::above(1).reversed({{.8, .9}}));
  EXPECT_FALSE(Bound::above(1).reversed({{.8, 1.1}}));
  EXPECT_TRUE(Bound::below(1).reversed({{1.1, 1.2}}));
  EXPECT_TRUE(Bound::speedup(2).reversed({{.8, .9}}));
  EXPECT_FALSE(Bound::at_least(1).reversed({{.8, .9}}));
}

TEST(VerdictTest, BoundsAreSaid) {
  EXPECT_EQ(Bound::speedup(1.26).text(), "≥ 1.208, each > 1");
  EXPECT_EQ(Bound::above(1).text(true), "> 1");
  EXPECT_EQ(Bound::within(2, .02).text(), "1.98 to 2.02");
  EXPECT_EQ(Bound::within(3, 0).text(), "= 3");
  EXPECT_EQ(Bound::at_most(1.05).text(), "≤ 1.05");
}

}  // namespace
}  // namespace paceline::cli::reproduce
