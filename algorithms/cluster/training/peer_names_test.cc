#include "algorithms/cluster/training/peer_names.h"

#include <gtest/gtest.h>

namespace paceline::cluster {
namespace {

TEST(PeerNamesTest, AgentsAreCalledByTheirNodes) {
  EXPECT_EQ(node_of_peer(agent_peer(NodeId{12})), NodeId{12});
  for (const char* const other : {"head", "agent/", "agent/x", "agent/1x", "worker/1", ""})
    EXPECT_EQ(node_of_peer(other), NodeId{-1}) << other;
}

TEST(PeerNamesTest, AWorkerAndItsSessionHaveItsNumber) {
  EXPECT_EQ(worker_of("worker/17"), WorkerId{17});
  EXPECT_EQ(worker_of("session/17"), WorkerId{17});
  EXPECT_TRUE(is_session("session/17"));
  EXPECT_FALSE(is_session("worker/17"));
  for (const char* const other : {"agent/17", "worker/", "session/-1", "driver/4711-1"})
    EXPECT_EQ(worker_of(other), WorkerId{0}) << other;
}

}  // namespace
}  // namespace paceline::cluster
