#include "actors/process_ids.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace paceline::actors {
namespace {

TEST(ProcessIdsTest, ProcessesOfAllNodesDifferAndOneKeepsItsOwn) {
  std::set<ProcessId> seen{0};
  for (const int node : {0, 1, kNodesMax - 1}) {
    ProcessIds sut{NodeId{node}};
    for (const char* peer : {"driver/1", "worker/1", "worker/2"}) {
      const auto id = sut.join(peer);
      EXPECT_TRUE(seen.insert(id).second) << node << peer;
      EXPECT_EQ(sut.join(peer), id);
    }
  }
}

TEST(ProcessIdsTest, WhatOneHasHadIsNobodysForLongAndNeverOneThatIsConnected) {
  ProcessIds sut{NodeId{0}};
  const auto stays = sut.join("driver/1");
  const auto gone = sut.join("driver/2");
  sut.leave("driver/2");
  std::set<ProcessId> seen;
  for (int i = 0; i < (1 << 20) - 3; ++i) {
    seen.insert(sut.join("worker"));
    sut.leave("worker");
  }
  EXPECT_FALSE(seen.contains(stays));
  EXPECT_FALSE(seen.contains(gone));
  EXPECT_NE(sut.join("another"), stays);
  EXPECT_NE(sut.join("one more"), stays);
}

TEST(ProcessIdsTest, IdsOfDifferentProcessesDifferWhateverTheirCounts) {
  constexpr ProcessId kLast = (1u << 30) - 1;
  std::set<std::uint64_t> tasks, actors;
  for (const ProcessId process : {1u, 2u, kLast - 1, kLast}) {
    for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, (std::uint64_t{1} << 33) - 1}) {
      tasks.insert(task_id(process, count).value);
      EXPECT_EQ(task_id(process, count).value >> 63, 0u) << "an averaging's";
    }
    for (const int node : {0, 1, kNodesMax - 1})
      for (const std::uint32_t count : {0u, 1u, (1u << 24) - 1}) {
        const auto id = actor_id(NodeId{node}, process, count);
        actors.insert(id.value);
        EXPECT_EQ(node_of(id), NodeId{node});
      }
  }
  EXPECT_EQ(tasks.size(), 4u * 3);
  EXPECT_EQ(actors.size(), 4u * 3 * 3);
}

TEST(ProcessIdsTest, AnAgentThatIsStartedAnewGivesOthersThanTheOneBefore) {
  std::set<ProcessId> seen;
  for (std::uint32_t starts = 0; starts < 16; ++starts) {
    ProcessIds sut(NodeId{3}, starts);
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(sut.join("driver/" + std::to_string(i))).second);
  }
}

}  // namespace
}  // namespace paceline::actors
