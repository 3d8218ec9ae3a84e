#include "cli/recorded/decision_lines.h"

#include <gtest/gtest.h>

#include "runtime/base/json.h"

namespace paceline::recorded {
namespace {

using scheduler::Decision;
using Kind = Decision::Kind;

constexpr Instant kStart{std::chrono::seconds(100)};

Decision a_seal() {
  return {.kind = Kind::sealed,
          .version = Version{7},
          .group = 1,
          .at = kStart + std::chrono::milliseconds(1250),
          .contributions = {{Rank{0}, Version{7}, 4}, {Rank{1}, Version{6}, 1}, {Rank{3}, std::nullopt, 0}}};
}

TEST(DecisionLinesTest, ASealSaysWhoWasFreshAndWhoLate) {
  EXPECT_EQ(decision_line(NodeId{2}, a_seal(), kStart),
            "node 2     1.250 s  sealed  version 7  group 1  fresh 0  late 1 (6)  nothing 3");
}

TEST(DecisionLinesTest, ABatchSaysHowManyMiniBatchesCounted) {
  const Decision batched{
      .kind = Kind::batched, .rank = Rank{3}, .version = Version{7}, .contributions = {{Rank{3}, Version{7}, 5}}};
  EXPECT_EQ(decision_line(NodeId{1}, batched, kStart),
            "node 1              batched  worker 3  version 7  mini-batches 5");
  EXPECT_EQ(decision_json(NodeId{1}, batched, kStart), nlohmann::json::parse(R"({
    "node": 1, "kind": "batched", "worker": 3, "version": 7,
    "contributions": [{"worker": 3, "iteration": 7, "batches": 5}]})"));
}

TEST(DecisionLinesTest, JsonHasTheFieldsThatCount) {
  EXPECT_EQ(decision_json(NodeId{2}, a_seal(), kStart), nlohmann::json::parse(R"({
    "node": 2, "kind": "sealed", "version": 7, "group": 1, "at_s": 1.25, "contributions": [
      {"worker": 0, "iteration": 7, "batches": 4}, {"worker": 1, "iteration": 6, "batches": 1}, {"worker": 3}]})"));
  EXPECT_EQ(decision_json(NodeId{0}, {.kind = Kind::exchanged, .rank = Rank{4}, .node = NodeId{1}, .group = 0}, kStart),
            nlohmann::json::parse(R"({"node": 0, "kind": "exchanged", "worker": 4, "from": 1, "group": 0})"));
  EXPECT_EQ(decision_json(NodeId{0},
                          {.kind = Kind::arrived,
                           .rank = Rank{4},
                           .version = Version{-1},
                           .at = kStart,
                           .took = std::chrono::milliseconds(500)},
                          kStart),
            nlohmann::json::parse(R"({"node": 0, "kind": "arrived", "worker": 4, "at_s": 0.0, "took_s": 0.5})"));
}

}  // namespace
}  // namespace paceline::recorded
