#include "scheduler/rounds/activation_tree.h"

#include <gmock/gmock.h>

#include <set>

namespace paceline::scheduler {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::int32_t> children(int root, int self, int nodes) {
  std::vector<std::int32_t> result;
  for (NodeId n : activation_children(NodeId{root}, NodeId{self}, nodes)) result.push_back(n.value);
  return result;
}

TEST(ActivationTree, FourAgentsAsInThePapersFigure) {
  EXPECT_THAT(children(1, 1, 4), ElementsAre(0, 3));
  EXPECT_THAT(children(1, 0, 4), ElementsAre(2));
  EXPECT_THAT(children(1, 2, 4), IsEmpty());
  EXPECT_THAT(children(1, 3, 4), IsEmpty());
}

TEST(ActivationTree, EightAgentsFromTheSixth) {
  EXPECT_THAT(children(5, 5, 8), ElementsAre(4, 7, 1));
  EXPECT_THAT(children(5, 4, 8), ElementsAre(6, 0));
  EXPECT_THAT(children(5, 7, 8), ElementsAre(3));
  EXPECT_THAT(children(5, 6, 8), ElementsAre(2));
}

TEST(ActivationTree, ThreeAgentsLoseNobody) {
  EXPECT_THAT(children(2, 2, 3), ElementsAre(0, 1));
  EXPECT_THAT(children(2, 0, 3), IsEmpty());
}

TEST(ActivationTree, ReachesEveryAgentOnceWhateverTheRootAndNumber) {
  for (int nodes = 1; nodes <= 33; ++nodes) {
    for (int root = 0; root < nodes; ++root) {
      std::multiset<std::int32_t> reached;
      for (int self = 0; self < nodes; ++self) {
        for (std::int32_t child : children(root, self, nodes)) reached.insert(child);
      }
      ASSERT_EQ(reached.size(), static_cast<std::size_t>(nodes - 1));
      ASSERT_EQ(std::set(reached.begin(), reached.end()).size(), reached.size());
      ASSERT_FALSE(reached.contains(root));
    }
  }
}

TEST(ActivationTree, AnAgentOutOfRangeForwardsToNobody) {
  EXPECT_THAT(children(4, 0, 4), IsEmpty());
  EXPECT_THAT(children(0, -1, 4), IsEmpty());
}

}  // namespace
}  // namespace paceline::scheduler
