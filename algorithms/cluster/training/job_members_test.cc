#include "algorithms/cluster/training/job_members.h"

#include <gtest/gtest.h>

namespace paceline::cluster {
namespace {

constexpr NodeId kHere{1};

class JobMembersTest : public ::testing::Test {
 protected:
  JobMembers sut{kHere, {NodeId{0}, kHere, kHere, NodeId{2}}};
};

TEST_F(JobMembersTest, RanksAreOfTheirNodes) {
  EXPECT_EQ(sut.local(), (std::vector{Rank{1}, Rank{2}}));
  EXPECT_EQ(sut.on(NodeId{2}), std::vector{Rank{3}});
  EXPECT_TRUE(sut.on(NodeId{7}).empty());
  EXPECT_TRUE(sut.is_local(Rank{1}));
  for (const std::int32_t rank : {-1, 0, 3, 4}) EXPECT_FALSE(sut.is_local(Rank{rank})) << rank;
}

TEST_F(JobMembersTest, AWorkerJoinsAndItsShareMayBeTakenBack) {
  sut.join(Rank{1}, WorkerId{71});
  EXPECT_EQ(sut.rank_of(WorkerId{71}), Rank{1});
  EXPECT_EQ(sut.worker_of(Rank{1}), WorkerId{71});
  sut.withdraw(Rank{1});
  EXPECT_EQ(sut.rank_of(WorkerId{71}), std::nullopt);
  EXPECT_FALSE(sut.has_joined(Rank{1}));
  sut.withdraw(Rank{2});
}

TEST_F(JobMembersTest, OneLeavesOnceAlsoBeforeItHasJoined) {
  EXPECT_TRUE(sut.leave(Rank{2}));
  EXPECT_FALSE(sut.leave(Rank{2}));
  EXPECT_TRUE(sut.has_left(Rank{2}));
  EXPECT_FALSE(sut.all_local_have_left());
  sut.leave(Rank{1});
  EXPECT_TRUE(sut.all_local_have_left());
}

TEST_F(JobMembersTest, OneThatHasLeftComesBackAsAnotherProcess) {
  sut.join(Rank{1}, WorkerId{71});
  sut.leave(Rank{1});
  sut.join(Rank{1}, WorkerId{72});
  EXPECT_TRUE(sut.has_left(Rank{1})) << "it is not back yet";
  EXPECT_EQ(sut.rank_of(WorkerId{71}), std::nullopt) << "what the last one says late is nobody's";
  EXPECT_EQ(sut.rank_of(WorkerId{72}), Rank{1});
  sut.come_back(Rank{1});
  EXPECT_FALSE(sut.has_left(Rank{1}));
  EXPECT_TRUE(sut.leave(Rank{1}));
}

TEST_F(JobMembersTest, AnotherNodeOfTheJobIsLostOnce) {
  EXPECT_EQ(sut.other_nodes(), (std::set{NodeId{0}, NodeId{2}}));
  EXPECT_FALSE(sut.lose(kHere));
  EXPECT_FALSE(sut.lose(NodeId{7}));
  EXPECT_TRUE(sut.lose(NodeId{2}));
  EXPECT_FALSE(sut.lose(NodeId{2}));
  EXPECT_EQ(sut.other_nodes(), std::set{NodeId{0}});
  EXPECT_EQ(sut.lost_nodes(), std::set{NodeId{2}});
}

}  // namespace
}  // namespace paceline::cluster
