#include "scheduler/rounds/used_partials.h"

#include <gmock/gmock.h>

namespace paceline::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr NodeId kOne{1}, kTwo{2}, kThree{3};

std::map<NodeId, RemotePartial> of(const std::vector<NodeId>& nodes) {
  std::map<NodeId, RemotePartial> partials;
  for (const NodeId node : nodes) partials[node].contributions = node.value;
  return partials;
}

std::vector<std::int64_t> passed_on(const UsedPartials& used, NodeId lost, NodeId to) {
  std::vector<std::int64_t> versions;
  used.pass_on(lost, to, [&](UsedPartials::Key key, const RemotePartial& partial) {
    EXPECT_EQ(partial.contributions, lost.value);
    versions.push_back(key.first);
  });
  return versions;
}

TEST(UsedPartialsTest, WhatOneThatHasNotExecutedMayLackIsPassedOn) {
  UsedPartials sut;
  for (const std::int64_t v : {4, 5}) sut.keep({v, 0}, {kOne, kTwo, kThree}, of({kOne, kTwo, kThree}));
  EXPECT_THAT(passed_on(sut, kThree, kOne), ElementsAre(4, 5));
  sut.on_given(kOne, Version{5});  // It has executed 4.
  EXPECT_THAT(passed_on(sut, kThree, kOne), ElementsAre(5));
  EXPECT_THAT(passed_on(sut, kThree, kTwo), ElementsAre(4, 5));
  sut.on_given(kOne, Version{2});  // Of before.
  EXPECT_THAT(passed_on(sut, kThree, kOne), ElementsAre(5));
}

TEST(UsedPartialsTest, NothingIsKeptWhereAllOthersHaveExecutedOrHaveTheirOwn) {
  UsedPartials sut;
  sut.keep({4, 0}, {kOne}, of({kOne}));
  EXPECT_TRUE(sut.empty()) << "it has its own";
  sut.keep({4, 0}, {kOne, kTwo}, of({kOne, kTwo}));
  sut.on_given(kOne, Version{5});
  EXPECT_THAT(passed_on(sut, kOne, kTwo), ElementsAre(4));
  EXPECT_THAT(passed_on(sut, kTwo, kOne), IsEmpty());
  sut.on_given(kTwo, Version{6});
  EXPECT_TRUE(sut.empty());
  sut.keep({4, 1}, {kOne, kTwo}, of({kOne, kTwo}));
  EXPECT_TRUE(sut.empty()) << "both were further than this agent";
}

TEST(UsedPartialsTest, WhoIsLostLacksNothing) {
  UsedPartials sut;
  sut.keep({4, 0}, {kOne, kTwo}, of({kOne, kTwo}));
  sut.on_lost(kTwo);
  EXPECT_THAT(passed_on(sut, kTwo, kOne), ElementsAre(4)) << "a second loss passes it on again";
  sut.on_given(kOne, Version{5});
  EXPECT_TRUE(sut.empty());
}

}  // namespace
}  // namespace paceline::scheduler
