#include "scheduler/mixing/contributions.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "scheduler/mixing/nobody_mixes_test_support.h"

namespace paceline::scheduler {
namespace {

using Said = std::vector<std::string>;

/// On node 1 of three with a worker each; node 0 is lost.
class ContributionsTest : public ::testing::Test {
 protected:
  static Contributions contributions(bool alike) { return {self_, view_, engine_, alike}; }
  static Said passed_on(const Contributions& from) {
    Said said;
    from.pass_on(NodeId{0}, NodeId{2}, [&](Rank rank, Version v, const Contribution& contribution) {
      said.push_back(to_string(rank) + " at " + to_string(v) + ", weighs " +
                     std::to_string(static_cast<int>(contribution.weight)));
    });
    return said;
  }
  static Contribution weighing(double weight) { return {{}, weight}; }

  inline static const NodeId self_{1};
  inline static const std::vector<NodeId> node_of_{NodeId{0}, NodeId{1}, NodeId{2}};
  inline static const View view_{self_, node_of_};
  inline static const MixEngine engine_{{.self = self_, .node_of = node_of_}, std::make_shared<NobodyMixes>()};
};

TEST_F(ContributionsTest, WhatALostAgentGaveIsPassedOnUsedOrNot) {
  auto sut = contributions(true);
  for (const int v : {0, 1}) sut.hold(Rank{0}, Version{v}, weighing(v));
  sut.hold(Rank{1}, Version{0}, weighing(9));
  sut.release(Rank{0}, Version{0});
  EXPECT_EQ(passed_on(sut), (Said{"0 at 0, weighs 0", "0 at 1, weighs 1"}));
}

TEST_F(ContributionsTest, WhoContributesToAVersionLacksNothingOfThoseBefore) {
  auto sut = contributions(true);
  for (const int v : {0, 1}) sut.hold(Rank{0}, Version{v}, weighing(v));
  sut.release(Rank{0}, Version{0});
  sut.on_given(Rank{2}, Version{1});
  EXPECT_EQ(passed_on(sut), Said{"0 at 1, weighs 1"});
}

TEST_F(ContributionsTest, WhereEachMixesOnItsOwnNothingIsPassedOn) {
  auto sut = contributions(false);
  sut.hold(Rank{0}, Version{0}, weighing(1));
  EXPECT_EQ(passed_on(sut), Said{});
}

}  // namespace
}  // namespace paceline::scheduler
