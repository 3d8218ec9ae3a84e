#include "scheduler/views/view_change.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/sanitized.h"

namespace paceline::scheduler {
namespace {

using testing::IsEmpty;

std::set<NodeId> nodes(std::initializer_list<std::int32_t> values) {
  std::set<NodeId> all;
  for (const auto value : values) all.insert(NodeId{value});
  return all;
}

std::string words(const ViewChange::Actions& actions) {
  std::string text;
  for (const auto& action : actions) {
    text += text.empty() ? "" : ", ";
    if (const auto* flush = std::get_if<ViewChange::Flush>(&action)) {
      text += "flush to " + to_string(flush->to) + " of";
      for (const NodeId lost : flush->lost) text += " " + to_string(lost);
    } else {
      text += "without " + to_string(std::get<ViewChange::Install>(action).lost);
    }
  }
  return text;
}

TEST(ViewChangeTest, OfTwoTheOtherGoesOnAtOnce) {
  ViewChange sut(NodeId{0}, nodes({0, 1}));
  EXPECT_EQ(words(sut.on_lost(NodeId{1})), "without 1");
  EXPECT_THAT(sut.on_lost(NodeId{1}), IsEmpty()) << "the head may say it twice";
  EXPECT_EQ(sut.members(), nodes({0}));
}

TEST(ViewChangeTest, OfThreeTheTwoFlushFirst) {
  ViewChange sut(NodeId{0}, nodes({0, 1, 2}));
  EXPECT_EQ(words(sut.on_lost(NodeId{2})), "flush to 1 of 2");
  EXPECT_EQ(words(sut.on_flushed(NodeId{1}, nodes({2}))), "without 2");
  EXPECT_THAT(sut.on_flushed(NodeId{1}, nodes({2})), IsEmpty());
}

TEST(ViewChangeTest, WhoHasFlushedBeforeThisOneHasHeardIsNotWaitedFor) {
  ViewChange sut(NodeId{0}, nodes({0, 1, 2}));
  EXPECT_THAT(sut.on_flushed(NodeId{1}, nodes({2})), IsEmpty());
  EXPECT_EQ(words(sut.on_lost(NodeId{2})), "flush to 1 of 2, without 2");
}

TEST(ViewChangeTest, AnotherLossStartsItAgainForAllThatAreLost) {
  ViewChange sut(NodeId{0}, nodes({0, 1, 2, 3}));
  EXPECT_EQ(words(sut.on_lost(NodeId{3})), "flush to 1 of 3, flush to 2 of 3");
  EXPECT_THAT(sut.on_flushed(NodeId{1}, nodes({3})), IsEmpty());
  EXPECT_EQ(words(sut.on_lost(NodeId{2})), "flush to 1 of 2 3");
  EXPECT_EQ(words(sut.on_flushed(NodeId{1}, nodes({2, 3}))), "without 2, without 3");
}

TEST(ViewChangeTest, NeitherItselfNorAStrangerIsLost) {
  ViewChange sut(NodeId{0}, nodes({0, 1}));
  EXPECT_THAT(sut.on_lost(NodeId{0}), IsEmpty());
  EXPECT_THAT(sut.on_lost(NodeId{7}), IsEmpty());
  EXPECT_EQ(sut.members(), nodes({0, 1}));
}

// All interleavings ---------------------------------------------------------------------------------------------------

/// Agents of which the last is lost, and in some walks the one before it, too, whenever. Each has had some of what the
/// last one gave, as a set of bits. What an agent sends arrives in order; of one that is lost whatever is still under
/// way arrives or does not.
struct World {
  struct Message {
    std::optional<unsigned> items = {};  ///< Of the last one; else the word "flushed".
    std::set<NodeId> lost = {};
  };
  struct Agent {
    ViewChange view;
    unsigned items = 0;
    std::size_t heard = 0;                   ///< Words of the head.
    std::optional<unsigned> goes_on_with{};  ///< What it had when it went on without the last one.
  };

  World(std::int32_t count, const std::vector<unsigned>& items, bool second) : second_is_lost(second) {
    std::set<NodeId> all;
    for (std::int32_t n = 0; n < count; ++n) all.insert(NodeId{n});
    for (std::int32_t n = 0; n + 1 < count; ++n)
      agents.push_back({ViewChange(NodeId{n}, all), items[static_cast<std::size_t>(n)]});
    wires.resize(agents.size() * agents.size());
    losses.push_back(NodeId{count - 1});
    if (second) losses.push_back(NodeId{count - 2});
  }

  std::deque<Message>& wire(std::size_t from, std::size_t to) { return wires[from * agents.size() + to]; }
  bool is_dead(std::size_t agent) const { return dead && agent + 1 == agents.size(); }

  void act(std::size_t self, const ViewChange::Actions& actions) {
    for (const auto& action : actions) {
      if (const auto* flush = std::get_if<ViewChange::Flush>(&action)) {
        const auto to = static_cast<std::size_t>(flush->to.value);
        if (flush->lost.contains(losses.front())) wire(self, to).push_back({.items = agents[self].items});
        wire(self, to).push_back({.lost = flush->lost});
      } else if (std::get<ViewChange::Install>(action).lost == losses.front()) {
        agents[self].goes_on_with = agents[self].items;
      }
    }
  }

  /// Everything that can happen next.
  std::vector<World> next() const {
    std::vector<World> all;
    if (second_is_lost && !dead) all.emplace_back(*this).dead = true;
    for (std::size_t n = 0; n < agents.size(); ++n) {
      if (is_dead(n)) continue;
      const std::size_t heard = agents[n].heard;
      if (heard < losses.size() && (heard == 0 || dead)) {
        World& after = all.emplace_back(*this);
        ++after.agents[n].heard;
        after.act(n, after.agents[n].view.on_lost(losses[heard]));
      }
      for (std::size_t from = 0; from < agents.size(); ++from) {
        if (wires[from * agents.size() + n].empty()) continue;
        World& after = all.emplace_back(*this);
        const Message message = after.wire(from, n).front();
        after.wire(from, n).pop_front();
        const NodeId sender{static_cast<std::int32_t>(from)};
        if (!after.agents[n].view.members().contains(sender)) continue;
        if (message.items) {
          after.agents[n].items |= *message.items;
        } else {
          after.act(n, after.agents[n].view.on_flushed(sender, message.lost));
        }
      }
    }
    if (dead)
      for (std::size_t n = 0; n < agents.size(); ++n)
        if (!wires[(agents.size() - 1) * agents.size() + n].empty())
          all.emplace_back(*this).wire(agents.size() - 1, n).clear();
    return all;
  }

  std::string fingerprint() const {
    std::string text(1, dead ? 'd' : ' ');
    for (const Agent& agent : agents) {
      text += std::to_string(agent.items) + "/" + std::to_string(agent.heard) + "/" + agent.view.fingerprint() +
              (agent.goes_on_with ? "w" + std::to_string(*agent.goes_on_with) : "") + ";";
    }
    for (const auto& wire : wires) {
      text += "|";
      for (const Message& message : wire) {
        text += message.items ? "i" + std::to_string(*message.items) : "f";
        for (const NodeId lost : message.lost) text += to_string(lost);
      }
    }
    return text;
  }

  std::vector<Agent> agents;
  std::vector<std::deque<Message>> wires;
  std::vector<NodeId> losses;
  bool second_is_lost;
  bool dead = false;
};

/// Walks all that can happen; where nothing can any more, all that are left have gone on with the same.
std::size_t walk(World world) {
  std::set<std::string> seen{world.fingerprint()};
  std::vector<World> open{std::move(world)};
  while (!open.empty()) {
    const World at = std::move(open.back());
    open.pop_back();
    auto all = at.next();
    if (all.empty()) {
      std::optional<unsigned> first;
      for (std::size_t n = 0; n < at.agents.size(); ++n) {
        if (at.is_dead(n)) continue;
        const auto& agent = at.agents[n];
        EXPECT_TRUE(agent.goes_on_with) << "agent " << n << " waits for ever";
        if (!agent.goes_on_with) return seen.size();
        if (!first) first = agent.goes_on_with;
        EXPECT_EQ(agent.goes_on_with, first) << "agent " << n << " goes on with something else";
        EXPECT_EQ(agent.items, *agent.goes_on_with) << "agent " << n << " has got something since";
      }
    }
    for (World& after : all)
      if (seen.insert(after.fingerprint()).second) open.push_back(std::move(after));
    if (testing::Test::HasFailure()) return seen.size();
  }
  return seen.size();
}

/// Whatever each had: of three bits one came to one agent only, one to two.
TEST(ViewChangeInterleavings, OfOneLossAllGoOnWithTheSame) {
  EXPECT_GT(walk(World(3, {1, 2}, false)), 10u);
  EXPECT_GT(walk(World(4, {1, 2, 4}, false)), 100u);
}

TEST(ViewChangeInterleavings, WhateverTheSecondThatIsLostHadPassedOn) {
  EXPECT_GT(walk(World(3, {0, 1}, true)), 10u) << "one is left";
  if (!kSanitized) {
    EXPECT_GT(walk(World(4, {1, 0, 2}, true)), 1000u) << "two are left";
  }
}

}  // namespace
}  // namespace paceline::scheduler
