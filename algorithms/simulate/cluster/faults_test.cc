#include "algorithms/simulate/cluster/faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace paceline::simulate {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(FaultsTest, AreReadWithTheirRates) {
  const auto rates = parse_faults("kill=1/min,freeze-head=0.5/s,cut=6/h");
  ASSERT_TRUE(rates);
  ASSERT_EQ(rates->size(), 3u);
  EXPECT_EQ((*rates)[0].kind, FaultKind::kill);
  EXPECT_DOUBLE_EQ((*rates)[0].per_s, 1 / 60.0);
  EXPECT_EQ((*rates)[1].kind, FaultKind::freeze_head);
  EXPECT_DOUBLE_EQ((*rates)[2].per_s, 6 / 3600.0);
  EXPECT_TRUE(parse_faults("")->empty());
}

TEST(FaultsTest, WhatIsNoneIsNamed) {
  for (const char* text : {"kill", "kill=", "kill=1", "kill=1/day", "kill=0/s", "kill=-1/s", "kill=nan/s", "kill=1e9/s",
                           "burn=1/s", "kill=1/s,,", "=", "kill=1/s,x", "\xff=1/s"}) {
    const auto rates = parse_faults(text);
    ASSERT_FALSE(rates) << text;
    EXPECT_THAT(rates.error().text, HasSubstr("give such as kill=1/min"));
  }
}

TEST(FaultsTest, ComeAsOftenAsTheirRateSaysAndTheSameForASeed) {
  SimulatedCluster cluster({.nodes = 2});
  const auto struck = [&](std::uint64_t seed) {
    Faults faults({{FaultKind::freeze_head, 10.0}, {FaultKind::kill_head, 5.0}}, seed, 2, Instant{});
    std::vector<std::pair<Instant, std::string>> all;
    while (*faults.next() < Instant{100s}) {
      const Instant at = *faults.next();
      all.emplace_back(at, faults.strike(cluster));
    }
    cluster.heal();
    return all;
  };
  const auto all = struck(1);
  const auto count = [&](const std::string& what) {
    return std::count_if(all.begin(), all.end(), [&](const auto& one) { return one.second == what; });
  };
  EXPECT_NEAR(static_cast<double>(count("the head freezes")), 1000, 150);
  EXPECT_NEAR(static_cast<double>(count("the head goes on")), 1000, 150);
  EXPECT_NEAR(static_cast<double>(count("the head is killed")), 500, 100);
  EXPECT_EQ(struck(1), all);
  EXPECT_NE(struck(2), all);
}

}  // namespace
}  // namespace paceline::simulate
