#include "actors/router/lending.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "actors/process_ids.h"
#include "actors/router/router_test_support.h"

namespace paceline::actors {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Shape kAnyShape{};
const Lending::Owner kLender{"driver/1", kHere};
const Lending::Owner kOther{"driver/2", kHere};

class LendingTest : public testing::Test {
 protected:
  /// All that is to be done; workers that are started are ready at once.
  void settle() {
    while (auto decision = sut.next()) {
      if (const auto* start = std::get_if<Lending::Start>(&*decision)) {
        const WorkerId worker = worker_id(kHere, ++started);
        sut.on_started(worker, start->root);
        sut.on_ready(worker);
      } else if (const auto* lend = std::get_if<Lending::Lend>(&*decision)) {
        lent.push_back(*lend);
      } else if (const auto* recall = std::get_if<Lending::Recall>(&*decision)) {
        recalled.push_back(*recall);
      } else {
        asked.push_back(std::get<Lending::Ask>(*decision));
      }
    }
  }
  void want(const Lending::Owner& owner, std::uint32_t workers, Shape shape = kAnyShape) {
    ASSERT_TRUE(sut.on_wants(owner, owner.name, shape, workers));
    settle();
  }
  std::size_t has(const Lending::Owner& owner) {
    std::size_t count = 0;
    for (std::uint32_t id = 1; id <= started; ++id) {
      const auto* one = sut.lent(worker_id(kHere, id));
      count += one != nullptr && one->owner == owner ? 1 : 0;
    }
    return count;
  }

  std::uint32_t started = 0;
  std::vector<Lending::Lend> lent;
  std::vector<Lending::Recall> recalled;
  std::vector<Lending::Ask> asked;
  Lending sut{{.node = kHere, .has = {2, 0x1p40}}};
};

TEST_F(LendingTest, AsManyAreStartedAsThereAreCpusFor) {
  want(kLender, 8);
  EXPECT_EQ(started, 2u);
  EXPECT_THAT(lent, SizeIs(2));
  EXPECT_EQ(sut.used().cpus, 2);
}

TEST_F(LendingTest, WhoHasMostIsAskedForWhatWouldBeFair) {
  want(kLender, 8);
  want(kOther, 8);
  ASSERT_THAT(recalled, SizeIs(1));
  EXPECT_EQ(recalled[0].owner, kLender);
  settle();
  EXPECT_THAT(recalled, SizeIs(1)) << "it was asked already";
  sut.on_returned(kLender, lent[0].worker);
  settle();
  EXPECT_EQ(has(kOther), 1u);
  EXPECT_EQ(has(kLender), 1u);
  EXPECT_THAT(recalled, SizeIs(1)) << "both have one";
}

TEST_F(LendingTest, MoreOwnersThanCpusTakeTurns) {
  Lending::Owner third{"driver/3", kHere};
  want(kLender, 8);
  want(kOther, 8);
  sut.on_returned(kLender, lent[0].worker);
  settle();
  want(third, 1);
  ASSERT_THAT(recalled, SizeIs(2));
  const auto from = recalled[1].owner;
  for (const auto& one : lent)
    if (sut.lent(one.worker) && sut.lent(one.worker)->owner == from) {
      sut.on_returned(from, one.worker);
      break;
    }
  settle();
  EXPECT_EQ(has(third), 1u);
}

TEST_F(LendingTest, OneThatWaitsFreesItsCpus) {
  want(kLender, 2);
  want(kOther, 1);
  const auto recalls = recalled.size();
  sut.on_waits(lent[0].worker, true);
  settle();
  EXPECT_EQ(has(kOther), 1u);
  EXPECT_EQ(recalled.size(), recalls);
  sut.on_waits(lent[0].worker, false);
  EXPECT_EQ(sut.used().cpus, 3) << "more than there are, until one is given back";
}

TEST_F(LendingTest, WhoLacksWorkersIsSeenSinceWhen) {
  constexpr Instant kBegin{std::chrono::seconds(100)};
  const auto lacking = [&](const Lending::Owner& owner) {
    for (const auto& want : sut.wants())
      if (want.owner == owner) return want.lacking;
    return std::optional<Instant>();
  };
  sut.at(kBegin);
  want(kLender, 2);
  EXPECT_EQ(lacking(kLender), std::nullopt) << "it has them";
  sut.at(kBegin + std::chrono::seconds(1));
  want(kOther, 2);
  sut.at(kBegin + std::chrono::seconds(5));
  sut.on_returned(kLender, lent[0].worker);
  settle();
  EXPECT_EQ(lacking(kOther), kBegin + std::chrono::seconds(1)) << "it has one, and wants two";
  ASSERT_THAT(sut.wants(), SizeIs(2));
  EXPECT_EQ(sut.wants()[1].lent, 1u);
  EXPECT_EQ(sut.wants()[1].wanted, 2u);
  ASSERT_THAT(sut.holds(), SizeIs(2));
  EXPECT_EQ(sut.holds()[0].since, kBegin);
  EXPECT_EQ(sut.holds()[1].since, kBegin + std::chrono::seconds(5));
  want(kOther, 1);
  EXPECT_EQ(lacking(kOther), std::nullopt);
  sut.on_waits(lent.back().worker, true);
  EXPECT_THAT(sut.holds(), SizeIs(1)) << "its task waits";
  EXPECT_EQ(sut.lent_since(lent.back().worker), kBegin + std::chrono::seconds(5));
  EXPECT_EQ(sut.lent_since(lent.front().worker), std::nullopt) << "it is idle";
}

TEST_F(LendingTest, OwnersOfOtherNodesAreSeenThereButForWhatTheyHold) {
  const Lending::Owner far{"driver/3", kThere};
  sut.on_node(kThere, Capacity{2, 0x1p40});
  want(far, 4);
  EXPECT_THAT(sut.wants(), IsEmpty());
  ASSERT_THAT(sut.holds(), SizeIs(1));
  EXPECT_EQ(sut.holds()[0].holds.cpus, 2);
  EXPECT_EQ(sut.holds()[0].workers, 2u);
}

TEST_F(LendingTest, TasksThatNeedNoCpuAreBoundedByWorkers) {
  want(kLender, 1000, Shape{0, NodeId{-1}});
  EXPECT_EQ(started, 64u);
}

TEST_F(LendingTest, WhatNoNodeHasIsInfeasible) {
  const auto wanted = sut.on_wants(kLender, "driver/1", Shape{3, NodeId{-1}}, 1);
  ASSERT_FALSE(wanted);
  EXPECT_EQ(wanted.error().text, "a task needs 3 cpus, but node 0 has 2 cpus: ask for no more than that");
  sut.on_node(kThere, Capacity{4, 0x1p40});
  want(kLender, 1, Shape{3, NodeId{-1}});
  ASSERT_THAT(asked, SizeIs(1)) << "the other node has it";
  EXPECT_THAT(sut.on_wants(kLender, "driver/1", Shape{5, NodeId{-1}}, 1).error().text,
              HasSubstr("no node has more than 4"));
  EXPECT_THAT(sut.on_wants(kLender, "driver/1", Shape{1, NodeId{7}}, 1).error().text, HasSubstr("node 7"));
  EXPECT_THAT(sut.on_wants(kLender, "driver/1", Shape{-1, NodeId{-1}}, 1).error().text, HasSubstr("at least 0"));
}

class LendingMemoryTest : public LendingTest {
 protected:
  LendingMemoryTest() { sut = Lending{{.node = kHere, .has = {4, 1024}}}; }
  static Shape with(std::uint64_t memory) { return {1, NodeId{-1}, memory}; }
};

TEST_F(LendingMemoryTest, MemoryIsLentOnce) {
  want(kLender, 4, with(400));
  EXPECT_EQ(started, 2u);
  EXPECT_EQ(sut.used().memory, 800);
  EXPECT_EQ(sut.free().cpus, 2);
  want(kOther, 1, with(200));
  EXPECT_EQ(has(kOther), 1u) << "for that one there is room";
}

TEST_F(LendingMemoryTest, ATaskThatWaitsKeepsItsMemory) {
  want(kLender, 1, with(700));
  sut.on_waits(lent[0].worker, true);
  EXPECT_EQ(sut.used().cpus, 0);
  EXPECT_EQ(sut.used().memory, 700);
  want(kOther, 1, with(400));
  EXPECT_EQ(has(kOther), 0u);
  ASSERT_THAT(sut.holds(), SizeIs(1));
  EXPECT_EQ(sut.holds()[0].holds.memory, 700);
  sut.on_returned(kLender, lent[0].worker);
  settle();
  EXPECT_EQ(has(kOther), 1u);
  EXPECT_EQ(sut.used().memory, 400);
}

TEST_F(LendingMemoryTest, WhoHoldsMostOfTheMemoryIsAskedForSome) {
  want(kLender, 1);
  want(kOther, 2, with(500));
  want({"driver/3", kHere}, 1, with(300));
  ASSERT_THAT(recalled, SizeIs(1));
  EXPECT_EQ(recalled[0].owner, kOther);
  EXPECT_EQ(recalled[0].shape, with(500));
}

TEST_F(LendingMemoryTest, WhoHoldsMostOfWhatLacksIsAskedNotWhoHoldsMost) {
  want(kLender, 3);
  want(kOther, 1, {0.5F, NodeId{-1}, 600});
  want({"driver/3", kHere}, 1, {0.5F, NodeId{-1}, 500});
  ASSERT_THAT(recalled, SizeIs(1));
  EXPECT_EQ(recalled[0].owner, kOther) << "the other one holds more cpus, but no memory";
}

TEST_F(LendingMemoryTest, MemoryThatNoNodeHasIsInfeasible) {
  const auto refused = [&](const Shape& shape) { return sut.on_wants(kLender, "driver/1", shape, 1).error().text; };
  EXPECT_EQ(refused({1, NodeId{-1}, std::uint64_t{3} << 30}),
            "a task needs 3 GiB of memory, but node 0 has 1 KiB of memory: ask for no more than that");
  sut.on_node(kThere, Capacity{1, 4000});
  EXPECT_THAT(refused(with(5000)), HasSubstr("no node has more than 3.91 KiB of memory"));
  EXPECT_THAT(refused({2, NodeId{-1}, 2000}), HasSubstr("needs 2 cpus and 1.95 KiB of memory, and no node has both"));
  EXPECT_THAT(refused({1, NodeId{-1}, ~std::uint64_t{0}}), HasSubstr("ask for no more"));
  want(kLender, 1, with(2000));
  ASSERT_THAT(asked, SizeIs(1)) << "the other node has it";
  EXPECT_EQ(started, 0u);
}

TEST_F(LendingTest, OthersAreAskedForWhatThisNodeLacks) {
  sut.on_node(kThere, Capacity{2, 0x1p40});
  want(kLender, 2);
  EXPECT_THAT(asked, IsEmpty());
  want(kLender, 8);
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_EQ(asked[0].workers, 2u);
  const WorkerId theirs = worker_id(kThere, 1);
  sut.on_lent_elsewhere(kLender, "driver/1", kAnyShape, theirs);
  settle();
  EXPECT_THAT(asked, SizeIs(1));
  const auto word = sut.on_returned(kLender, theirs);
  ASSERT_TRUE(word);
  EXPECT_EQ(word->workers, 0u);
  want(kLender, 0);
  EXPECT_THAT(asked, SizeIs(1)) << "it knows";
}

TEST_F(LendingTest, WhatIsLentElsewhereTooLateCanBeGivenBack) {
  sut.on_node(kThere, Capacity{2, 0x1p40});
  want(kLender, 0);
  sut.on_lent_elsewhere(kLender, "driver/1", kAnyShape, worker_id(kThere, 1));
  settle();
  EXPECT_TRUE(sut.on_returned(kLender, worker_id(kThere, 1)));
}

TEST_F(LendingTest, ATaskForANodeIsAskedOfThatNodeOnly) {
  sut.on_node(kThere, Capacity{2, 0x1p40});
  want(kLender, 1, Shape{1, kThere});
  EXPECT_EQ(started, 0u);
  ASSERT_THAT(asked, SizeIs(1));
  EXPECT_EQ(asked[0].node, kThere);
  want(kLender, 3, Shape{1, kHere});
  EXPECT_EQ(started, 2u);
  EXPECT_THAT(asked, SizeIs(1));
}

TEST_F(LendingTest, WhatCannotBeStartedIsWantedNoMore) {
  ASSERT_TRUE(sut.on_wants(kLender, "driver/1", kAnyShape, 3));
  const auto missing = sut.give_up("driver/1");
  ASSERT_THAT(missing, SizeIs(1));
  EXPECT_EQ(missing[0].owner, kLender);
  settle();
  EXPECT_EQ(started, 0u);
}

/// Owners that want, return, wait and die at random: cpus are never lent twice, but for those whose task went on, and
/// at the end each owner that wants has at least one as soon as all gave theirs back.
TEST(Lending, NothingIsLentTwiceWhateverHappens) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto upto = [&](unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random); };
    Lending sut{{.node = kHere, .has = {3, 6}}};
    std::uint32_t started = 0;
    std::map<WorkerId, Lending::Owner> lent;
    std::set<WorkerId> waits;
    const auto settle = [&] {
      int decisions = 0;
      while (auto decision = sut.next()) {
        ASSERT_LT(++decisions, 1000) << seed;
        if (const auto* start = std::get_if<Lending::Start>(&*decision)) {
          sut.on_started(worker_id(kHere, ++started), start->root);
          if (upto(2) == 0) sut.on_ready(worker_id(kHere, started));
        } else if (const auto* lend = std::get_if<Lending::Lend>(&*decision)) {
          ASSERT_TRUE(lent.emplace(lend->worker, lend->owner).second) << seed << ": it is lent already";
          ASSERT_LE(sut.used().cpus, 3 + 1e-3) << seed;
          ASSERT_LE(sut.used().memory, 6) << seed;
        }
      }
    };
    for (int step = 0; step < 300; ++step) {
      const Lending::Owner owner{"driver/" + std::to_string(upto(4)), kHere};
      const auto some = lent.empty() ? lent.end() : std::next(lent.begin(), upto(static_cast<unsigned>(lent.size())));
      switch (upto(6)) {
        case 0:
        case 1:
          (void)sut.on_wants(owner, owner.name, Shape{upto(2) == 0 ? 1.0F : 0.5F, NodeId{-1}, upto(3)}, upto(5));
          break;
        case 2:
          if (some == lent.end()) break;
          sut.on_returned(some->second, some->first);
          waits.erase(some->first);
          lent.erase(some);
          break;
        case 3:
          if (started > 0) sut.on_ready(worker_id(kHere, 1 + upto(started)));
          break;
        case 4:
          if (some == lent.end()) break;
          if (waits.insert(some->first).second) sut.on_waits(some->first, true);
          break;
        case 5:
          if (some == lent.end() || upto(3) > 0) break;
          (void)sut.on_worker_gone(some->first);
          waits.erase(some->first);
          lent.erase(some);
      }
      settle();
    }
    for (const auto& [worker, owner] : std::map(lent)) sut.on_returned(owner, worker);
    EXPECT_NEAR(sut.used().cpus, 0, 1e-3) << seed;
    EXPECT_EQ(sut.used().memory, 0) << seed;
  }
}

}  // namespace
}  // namespace paceline::actors
