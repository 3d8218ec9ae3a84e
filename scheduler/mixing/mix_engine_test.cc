#include "scheduler/mixing/mix_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <random>
#include <set>

namespace paceline::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

/// Directed ring: everybody keeps half and sends half to the next rank.
class DirectedRing final : public MixPlan {
 public:
  explicit DirectedRing(std::int32_t workers) : workers_(workers) {}
  std::vector<Share> row(Rank to, Version) const override {
    const Rank from{(to.value + workers_ - 1) % workers_};
    if (from < to) return {{from, 0.5}, {to, 0.5}};
    return {{to, 0.5}, {from, 0.5}};
  }
  std::vector<Rank> receivers(Rank from, Version) const override { return {Rank{(from.value + 1) % workers_}}; }

 private:
  std::int32_t workers_;
};

/// Everybody keeps half and sends half one rank on, and two ranks on the next time.
class TwoHops final : public MixPlan {
 public:
  explicit TwoHops(std::int32_t workers) : workers_(workers) {}
  std::vector<Share> row(Rank to, Version v) const override {
    const Rank from{(to.value + workers_ - hop(v)) % workers_};
    if (from < to) return {{from, 0.5}, {to, 0.5}};
    return {{to, 0.5}, {from, 0.5}};
  }
  std::vector<Rank> receivers(Rank from, Version v) const override { return {Rank{(from.value + hop(v)) % workers_}}; }

 private:
  static std::int32_t hop(Version v) { return v.value % 2 == 0 ? 1 : 2; }
  std::int32_t workers_;
};

std::vector<NodeId> on_nodes(std::initializer_list<std::int32_t> nodes) {
  std::vector<NodeId> all;
  for (const auto n : nodes) all.push_back(NodeId{n});
  return all;
}

MixEngine ring(std::vector<NodeId> node_of, std::int32_t self = 0) {
  const auto workers = static_cast<std::int32_t>(node_of.size());
  return {{.self = NodeId{self}, .node_of = std::move(node_of), .columns_add_up = true},
          std::make_unique<DirectedRing>(workers)};
}

std::vector<Rank> mixed(const MixEngine::Actions& actions) {
  std::vector<Rank> all;
  for (const auto& action : actions)
    if (const auto* mix = std::get_if<MixEngine::Mix>(&action)) all.push_back(mix->rank);
  return all;
}
std::vector<Rank> released(const MixEngine::Actions& actions) {
  std::vector<Rank> all;
  for (const auto& action : actions)
    if (const auto* release = std::get_if<MixEngine::Release>(&action)) all.push_back(release->rank);
  return all;
}

TEST(MixEngineTest, AWorkerWaitsForThoseItTakesFromOnly) {
  auto sut = ring(on_nodes({0, 0, 0}));
  sut.on_contribution(Rank{0}, Version{0});
  EXPECT_TRUE(sut.on_wanted(Rank{0}, Version{0}).empty()) << "rank 2 has not contributed";
  sut.on_contribution(Rank{1}, Version{0});
  EXPECT_TRUE(sut.ready(Rank{1}, Version{0}));
  EXPECT_THAT(mixed(sut.on_wanted(Rank{1}, Version{0})), ElementsAre(Rank{1}));
  EXPECT_THAT(mixed(sut.on_contribution(Rank{2}, Version{0})), ElementsAre(Rank{0}));
}

TEST(MixEngineTest, AContributionIsKeptUntilAllWhoTakeFromItHaveMixed) {
  auto sut = ring(on_nodes({0, 0}));
  sut.on_contribution(Rank{0}, Version{0});
  sut.on_contribution(Rank{1}, Version{0});
  sut.on_wanted(Rank{0}, Version{0});
  EXPECT_TRUE(released(sut.on_mixed(Rank{0}, Version{0})).empty());
  sut.on_wanted(Rank{1}, Version{0});
  EXPECT_THAT(released(sut.on_mixed(Rank{1}, Version{0})), UnorderedElementsAre(Rank{0}, Rank{1}));
}

TEST(MixEngineTest, ContributionsGoToTheAgentsThatNeedThemOnce) {
  auto sut = ring(on_nodes({0, 1, 1}));
  const auto actions = sut.on_contribution(Rank{0}, Version{0});
  ASSERT_EQ(actions.size(), 1U);
  const auto& send = std::get<MixEngine::Send>(actions[0]);
  EXPECT_EQ(send.to, NodeId{1});
  EXPECT_EQ(send.rank, Rank{0});
  EXPECT_TRUE(sut.on_contribution(Rank{0}, Version{0}).empty()) << "a second time changes nothing";
  EXPECT_TRUE(mixed(sut.on_wanted(Rank{0}, Version{0})).empty());
  EXPECT_THAT(mixed(sut.on_contribution(Rank{2}, Version{0})), ElementsAre(Rank{0}));
  EXPECT_TRUE(sut.on_contribution(Rank{2}, Version{0}).empty());
}

/// Of three in a ring: what worker 0 takes from worker 2, and what worker 1 keeps of what that would take, from version
/// 0 on.
std::vector<std::size_t> givers(const MixEngine& engine, std::int64_t versions) {
  std::vector<std::size_t> all;
  for (std::int64_t v = 0; v < versions; ++v) all.push_back(engine.row(Rank{0}, Version{v}).size());
  return all;
}
std::vector<double> kept(const MixEngine& engine, std::int64_t versions) {
  std::vector<double> all;
  for (std::int64_t v = 0; v < versions; ++v) all.push_back(engine.row(Rank{1}, Version{v}).back().weight);
  return all;
}

TEST(MixEngineTest, WhoIsBackGivesAndTakesFromTheNextVersionOn) {
  auto sut = ring(on_nodes({0, 0, 1}));
  sut.on_gone(Rank{2}, Version{1}, Version{0});
  EXPECT_THAT(sut.left(), ElementsAre(Rank{0}, Rank{1}));
  EXPECT_TRUE(sut.on_back(Rank{2}, Version{3}).empty());
  EXPECT_THAT(sut.left(), SizeIs(3));
  EXPECT_THAT(givers(sut, 6), ElementsAre(2, 2, 1, 1, 2, 2));
  EXPECT_THAT(kept(sut, 6), ElementsAre(0.5, 1, 1, 1, 0.5, 0.5));
  sut.on_gone(Rank{2}, Version{4}, Version{4});
  EXPECT_THAT(givers(sut, 6), ElementsAre(2, 2, 1, 1, 2, 1));
  EXPECT_THAT(kept(sut, 6), ElementsAre(0.5, 1, 1, 1, 0.5, 1));
}

TEST(MixEngineTest, ThatSomebodyHadGoneMayBeHeardAfterThatItIsBack) {
  auto sut = ring(on_nodes({0, 0, 1}));
  sut.on_back(Rank{2}, Version{3});
  sut.on_back(Rank{2}, Version{6});
  sut.on_gone(Rank{2}, Version{1}, Version{1});
  EXPECT_THAT(sut.left(), SizeIs(3));
  EXPECT_THAT(givers(sut, 6), ElementsAre(2, 2, 1, 1, 2, 2));
  sut.on_gone(Rank{2}, Version{4}, Version{4});
  EXPECT_THAT(sut.left(), SizeIs(3));
  EXPECT_THAT(givers(sut, 8), ElementsAre(2, 2, 1, 1, 2, 1, 1, 2));
}

TEST(MixEngineTest, ThatSomebodyIsGoneAgainMayBeHeardBeforeThatItWasBack) {
  auto sut = ring(on_nodes({0, 0, 1}));
  sut.on_contribution(Rank{0}, Version{5});
  sut.on_gone(Rank{2}, Version{1}, Version{1});
  sut.on_gone(Rank{2}, Version{4}, Version{4});
  EXPECT_THAT(givers(sut, 6), ElementsAre(2, 2, 1, 1, 1, 1));
  sut.on_wanted(Rank{0}, Version{5});
  sut.on_back(Rank{2}, Version{3});
  EXPECT_THAT(givers(sut, 6), ElementsAre(2, 2, 1, 1, 2, 1));
  EXPECT_THAT(sut.left(), SizeIs(2));
}

TEST(MixEngineTest, WhoIsLostBeforeItGivesAgainGaveNothingSinceItWasBack) {
  auto sut = ring(on_nodes({0, 0, 1}));
  sut.on_contribution(Rank{2}, Version{0});
  sut.on_gone(Rank{2}, Version{0}, Version{0});
  sut.on_back(Rank{2}, Version{3});
  sut.on_lost(Rank{2});
  EXPECT_THAT(givers(sut, 6), ElementsAre(2, 1, 1, 1, 1, 1));
}

TEST(MixEngineTest, WhatNobodyHereTakesIsReleasedAtOnce) {
  auto sut = ring(on_nodes({1, 0, 1}));
  EXPECT_THAT(released(sut.on_contribution(Rank{2}, Version{0})), ElementsAre(Rank{2}));
}

TEST(MixEngineTest, OneThatIsGoneIsMixedWithoutAndItsShareStaysWithTheSender) {
  auto sut = ring(on_nodes({0, 0, 0}));
  for (const auto r : {0, 1, 2}) sut.on_contribution(Rank{r}, Version{0});
  for (const auto r : {0, 1, 2}) {
    sut.on_wanted(Rank{r}, Version{0});
    sut.on_mixed(Rank{r}, Version{0});
  }
  sut.on_contribution(Rank{0}, Version{1});
  sut.on_contribution(Rank{1}, Version{1});
  sut.on_wanted(Rank{0}, Version{1});
  const auto alone = sut.on_gone(Rank{2}, Version{0}, Version{0});
  ASSERT_THAT(mixed(alone), ElementsAre(Rank{0})) << "it waited for rank 2";
  const auto actions = sut.on_wanted(Rank{1}, Version{1});
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_THAT(std::get<MixEngine::Mix>(actions[0]).row, ElementsAre(Share{Rank{0}, 0.5}, Share{Rank{1}, 1.0}));
}

/// A third of each neighbour's.
class Ring final : public MixPlan {
 public:
  explicit Ring(std::int32_t workers) : workers_(workers) {}
  std::vector<Share> row(Rank to, Version) const override {
    std::vector<Share> shares;
    for (std::int32_t from = 0; from < workers_; ++from)
      if (const auto apart = std::abs(from - to.value); apart < 2 || apart == workers_ - 1)
        shares.push_back({Rank{from}, 1.0 / 3});
    return shares;
  }
  std::vector<Rank> receivers(Rank from, Version v) const override {
    std::vector<Rank> others;
    for (const Share& share : row(from, v))
      if (share.from != from) others.push_back(share.from);
    return others;
  }

 private:
  std::int32_t workers_;
};

double weight_of(const std::vector<Share>& row) {
  double sum = 0;
  for (const Share& share : row) sum += share.weight;
  return sum;
}

/// It has contributed to a version that it will not mix: killed while it waited, or computed.
TEST(MixEngineTest, WithoutPushSumRowsAddUpToOneWhateverOneThatIsGoneHadGiven) {
  for (const std::int64_t mixed : {0, 1}) {
    MixEngine sut{{.self = NodeId{0}, .node_of = on_nodes({0, 0, 0, 0})}, std::make_unique<Ring>(4)};
    sut.on_gone(Rank{1}, Version{1}, Version{mixed});
    for (const std::int64_t v : {1, 2, 3})
      for (const std::int32_t to : {0, 2, 3})
        EXPECT_NEAR(weight_of(sut.row(Rank{to}, Version{v})), 1, 1e-15) << v << ", to " << to << ", mixed " << mixed;
    EXPECT_THAT(sut.row(Rank{0}, Version{1}), SizeIs(3)) << "what it has given counts";
    EXPECT_THAT(sut.row(Rank{0}, Version{2}), SizeIs(2));
  }
}

TEST(MixEngineTest, FromAVersionOnAnotherPlanHolds) {
  auto sut = ring(on_nodes({0, 0, 0, 0}));
  for (const std::int32_t gone : {2, 3}) sut.on_gone(Rank{gone}, Version{4}, Version{4});
  EXPECT_THAT(sut.running_dry(Version{5}, 4), ElementsAre(Rank{0}));
  EXPECT_THAT(sut.left(), ElementsAre(Rank{0}, Rank{1}));
  sut.remake(Version{6}, std::make_unique<DirectedRing>(2));
  EXPECT_THAT(sut.row(Rank{0}, Version{6}), ElementsAre(Share{Rank{0}, 0.5}));
  EXPECT_THAT(sut.row(Rank{0}, Version{7}), ElementsAre(Share{Rank{0}, 0.5}, Share{Rank{1}, 0.5}));
  EXPECT_TRUE(sut.running_dry(Version{6}, 4).empty());
  for (const std::int64_t v : {6, 7})
    for (const std::int32_t rank : {0, 1}) sut.on_contribution(Rank{rank}, Version{v});
  EXPECT_THAT(mixed(sut.on_wanted(Rank{0}, Version{7})), ElementsAre(Rank{0}));
}

TEST(MixEngineTest, OfOneWhoseAgentIsLostCountsWhatHasCome) {
  MixEngine sut{{.self = NodeId{0}, .node_of = on_nodes({0, 0, 1, 0})}, std::make_unique<Ring>(4)};
  for (const std::int32_t rank : {0, 1, 2}) sut.on_contribution(Rank{rank}, Version{1});
  sut.on_wanted(Rank{1}, Version{1});
  EXPECT_TRUE(sut.has_contributed(Rank{2}, Version{1}));
  EXPECT_FALSE(sut.has_contributed(Rank{2}, Version{2}));
  sut.on_lost(Rank{2});
  sut.on_mixed(Rank{1}, Version{1});
  for (const std::int32_t rank : {0, 1, 3}) sut.on_contribution(Rank{rank}, Version{2});
  EXPECT_THAT(mixed(sut.on_wanted(Rank{1}, Version{2})), ElementsAre(Rank{1})) << "it waits no longer";
  EXPECT_NEAR(weight_of(sut.row(Rank{3}, Version{1})), 1, 1e-15);
}

/// It says so when it has done its last, and its agent when it is killed.
TEST(MixEngineTest, OneThatIsGoneTwiceIsGoneOnce) {
  auto sut = ring(on_nodes({0, 0, 0}));
  sut.on_contribution(Rank{0}, Version{1});
  sut.on_contribution(Rank{2}, Version{1});
  for (int i = 0; i < 2; ++i) EXPECT_THAT(released(sut.on_gone(Rank{1}, Version{0}, Version{0})), testing::IsEmpty());
  EXPECT_TRUE(sut.ready(Rank{0}, Version{1})) << "its own is still held";
}

TEST(MixEngineTest, NothingIsHeldWhenAllHaveGoneThrough) {
  // Four workers on two agents, messages in any order that keeps each sender's: every version is mixed exactly once a
  // worker, from exactly its shares, and every contribution is released once on each agent that had it.
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto nodes = on_nodes({0, 1, 0, 1});
    std::vector<MixEngine> engines;
    for (const auto n : {0, 1}) engines.push_back(ring(nodes, n));
    struct Message {
      Rank rank;
      Version version;
    };
    std::deque<Message> wires[2];
    std::vector<std::int64_t> t(4, 0);
    std::vector<bool> waits(4, false);
    std::multiset<std::pair<std::int32_t, std::int64_t>> releases;
    const std::function<void(std::size_t, MixEngine::Actions)> run = [&](std::size_t n, MixEngine::Actions actions) {
      for (const auto& action : actions) {
        if (const auto* send = std::get_if<MixEngine::Send>(&action)) {
          wires[send->to.value].push_back({send->rank, send->version});
        } else if (const auto* release = std::get_if<MixEngine::Release>(&action)) {
          releases.insert({release->rank.value, release->version.value});
        } else {
          const auto& mix = std::get<MixEngine::Mix>(action);
          const auto r = static_cast<std::size_t>(mix.rank.value);
          ASSERT_TRUE(waits[r]);
          ASSERT_EQ(mix.version.value, t[r]);
          waits[r] = false;
          ++t[r];
          run(n, engines[n].on_mixed(mix.rank, mix.version));
        }
      }
    };
    constexpr std::int64_t kSteps = 6;
    for (int i = 0; i < 2000; ++i) {
      const auto pick = random() % 6;
      if (pick < 4) {
        if (waits[pick] || t[pick] == kSteps) continue;
        waits[pick] = true;
        const Rank rank{static_cast<std::int32_t>(pick)};
        const auto n = static_cast<std::size_t>(nodes[pick].value);
        run(n, engines[n].on_contribution(rank, Version{t[pick]}));
        run(n, engines[n].on_wanted(rank, Version{t[pick]}));
      } else if (auto& wire = wires[pick - 4]; !wire.empty()) {
        const Message m = wire.front();
        wire.pop_front();
        run(pick - 4, engines[pick - 4].on_contribution(m.rank, m.version));
      }
    }
    for (const auto steps : t) EXPECT_EQ(steps, kSteps) << "seed " << seed;
    EXPECT_EQ(releases.size(), 2U * 4 * kSteps) << "each here and there, seed " << seed;
  }
}

TEST(MixEngineTest, NobodyRunsDryWhereWhatIsGivenComesBack) {
  EXPECT_TRUE(ring(on_nodes({0, 0, 0, 0})).running_dry(Version{0}, 8).empty());
}

TEST(MixEngineTest, WhoGivesTowardsADeadEndRunsDry) {
  auto sut = ring(on_nodes({0, 0, 0, 0}));
  sut.on_gone(Rank{2}, Version{4}, Version{4});
  EXPECT_THAT(sut.running_dry(Version{0}, 4), ElementsAre(Rank{0}, Rank{3})) << "what counts is after its last";
  // 3 gives to 0, 0 to 1, and 1 to nobody: it keeps what it has.
  EXPECT_THAT(sut.running_dry(Version{5}, 4), ElementsAre(Rank{0}, Rank{3}));
  sut.on_gone(Rank{0}, Version{4}, Version{4});
  EXPECT_TRUE(sut.running_dry(Version{5}, 4).empty()) << "each of the two keeps what it has";
}

TEST(MixEngineTest, WhoIsGoneDoesNotRunDryWhateverItGaveAhead) {
  MixEngine sut{{.self = NodeId{0}, .node_of = on_nodes({0, 0, 0, 0})}, std::make_unique<TwoHops>(4)};
  sut.on_gone(Rank{2}, Version{9}, Version{4});
  EXPECT_TRUE(sut.running_dry(Version{5}, 8).empty()) << "0 gives to 1, 1 to 3, 3 to 0";
}

}  // namespace
}  // namespace paceline::scheduler
