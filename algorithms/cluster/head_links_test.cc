#include "algorithms/cluster/head_links.h"

#include <gtest/gtest.h>

#include "runtime/transport/sim/sim_network.h"

namespace paceline::cluster {
namespace {

/// Of three nodes.
class HeadLinksTest : public testing::Test {
 protected:
  void hello(std::int32_t node) {
    wire::Message message;
    message.root().initHello();
    sut_.on_hello(NodeId{node}, "agent/" + std::to_string(node), message.root().asReader().getHello());
  }
  bool are_linked(std::int32_t one, std::int32_t other) const { return sut_.are_linked(NodeId{one}, NodeId{other}); }

  transport::SimNetwork network_{1};
  HeadLinks sut_{network_.endpoint("head"), 3};
};

TEST_F(HeadLinksTest, AllAreReadyWhenEachIsConnectedToThoseOfALowerNumber) {
  for (const std::int32_t node : {0, 1, 2}) hello(node);
  EXPECT_TRUE(sut_.on_linked(NodeId{1}, 1));
  EXPECT_TRUE(sut_.on_linked(NodeId{2}, 1));
  EXPECT_TRUE(are_linked(2, 0));
  EXPECT_FALSE(are_linked(2, 1)) << "it had not registered in this epoch";
  EXPECT_FALSE(sut_.ready());
  EXPECT_TRUE(sut_.on_linked(NodeId{2}, 2));
  EXPECT_TRUE(are_linked(1, 2));
  EXPECT_TRUE(sut_.ready());
}

TEST_F(HeadLinksTest, ANodeOfAHigherNumberIsOneMore) {
  for (const std::int32_t node : {0, 1, 2, 4}) hello(node);
  for (const std::int32_t node : {1, 2, 4}) sut_.on_linked(NodeId{node}, 4);
  EXPECT_EQ(sut_.expected(), 5);
  EXPECT_FALSE(sut_.ready()) << "node 3 is to come";
  hello(3);
  for (const std::int32_t node : {3, 4}) sut_.on_linked(NodeId{node}, 5);
  EXPECT_TRUE(sut_.ready());
}

TEST_F(HeadLinksTest, OneThatIsStartedAnewIsReachedByNobodyYet) {
  for (const std::int32_t node : {0, 1, 2}) hello(node);
  for (const std::int32_t node : {1, 2}) sut_.on_linked(NodeId{node}, 3);
  ASSERT_TRUE(sut_.ready());
  hello(0);
  EXPECT_FALSE(sut_.ready());
  EXPECT_FALSE(are_linked(0, 1));
  EXPECT_TRUE(are_linked(1, 2));
  EXPECT_TRUE(sut_.erase(NodeId{1}));
  EXPECT_FALSE(are_linked(1, 2));
  EXPECT_FALSE(sut_.on_linked(NodeId{1}, 4)) << "it is not registered";
}

}  // namespace
}  // namespace paceline::cluster
