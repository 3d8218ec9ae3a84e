#include "scheduler/asynchronous/pair_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <random>
#include <set>

namespace paceline::scheduler {
namespace {

using Sent = PairEngine::Phase;
using Meeting = PairEngine::Meeting;
using testing::ElementsAre;
using testing::IsEmpty;

/// Engines of several agents with one number as each worker's model. Averagings and steps take as long as the test
/// likes; messages of one agent to another keep their order.
class PairAgents {
 public:
  explicit PairAgents(const std::vector<std::int32_t>& node_of) {
    for (const auto n : node_of) node_of_.push_back(NodeId{n});
    const auto nodes = std::set(node_of_.begin(), node_of_.end());
    for (const NodeId node : nodes) engines.emplace(node, PairEngine({.self = node, .node_of = node_of_}));
    for (std::size_t i = 0; i < node_of_.size(); ++i) models.push_back(static_cast<double>(64 * i));
  }

  NodeId node(Rank rank) const { return node_of_[static_cast<std::size_t>(rank.value)]; }
  double& model(Rank rank) { return models[static_cast<std::size_t>(rank.value)]; }
  double sum() const {
    double sum = 0;
    for (const double m : models) sum += m;
    return sum;
  }

  void begin(std::int32_t rank) { act(node(Rank{rank}), engine(Rank{rank}).on_begun(Rank{rank})); }
  void begin_all() {
    for (std::size_t i = 0; i < node_of_.size(); ++i) begin(static_cast<std::int32_t>(i));
  }
  void arrive(std::int32_t rank, std::optional<std::int32_t> partner) {
    const auto other = partner ? std::optional(Rank{*partner}) : std::nullopt;
    act(node(Rank{rank}), engine(Rank{rank}).on_arrival(Rank{rank}, other));
  }
  /// An agent, with all that is under way from and to it.
  void lose(NodeId lost) {
    engines.erase(lost);
    std::erase_if(network, [&](const auto& wire) { return wire.first.first == lost || wire.first.second == lost; });
    std::erase_if(running, [&](const Running& one) { return one.node == lost; });
    std::erase_if(busy, [&](Rank rank) { return node(rank) == lost; });
    for (auto& [at, engine] : engines) act(at, engine.on_node_gone(lost));
  }
  bool is_free(std::int32_t rank) { return engine(Rank{rank}).is_free(Rank{rank}); }
  void gone(std::int32_t rank) { act(node(Rank{rank}), engine(Rank{rank}).on_gone(Rank{rank})); }

  /// Lets one thing happen that can: a message arrives, or a reduction ends. False: nothing can.
  bool something(std::size_t which) {
    std::vector<std::function<void()>> possible;
    for (auto& [way, queue] : network) {
      if (queue.empty()) continue;
      possible.emplace_back([this, to = way.second, &queue = queue] {
        const Message message = queue.front();
        queue.pop_front();
        receive(to, message);
      });
    }
    for (std::size_t k = 0; k < running.size(); ++k) {
      possible.emplace_back([this, k] {
        const Running done = running[k];
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(k));
        finish(done);
      });
    }
    if (possible.empty()) return false;
    possible[which % possible.size()]();
    return true;
  }
  void everything() {
    while (something(0)) {
    }
  }

  struct Message {
    Sent phase;
    Meeting meeting;
    double model;
  };
  struct Running {
    NodeId node;
    std::optional<Meeting> averages;
    Rank steps;
  };
  std::map<NodeId, PairEngine> engines;
  std::vector<double> models;
  std::map<std::pair<NodeId, NodeId>, std::deque<Message>> network;
  std::vector<Running> running;
  std::vector<Rank> stepped;
  double step = 0;      ///< What each step adds.
  std::set<Rank> busy;  ///< Whose models a running reduction changes.
  std::int64_t averages = 0;

 private:
  PairEngine& engine(Rank rank) { return engines.at(node(rank)); }
  void mark_busy(Rank rank) { EXPECT_TRUE(busy.insert(rank).second) << "two change the model of " << to_string(rank); }

  void act(NodeId at, const PairEngine::Actions& actions) {
    for (const auto& action : actions) {
      if (const auto* send = std::get_if<PairEngine::Send>(&action)) {
        double model_sent = 0;
        if (send->phase == Sent::offer) model_sent = lent_[send->meeting.low()] = model(send->meeting.low());
        if (send->phase == Sent::mean) model_sent = model(send->meeting.high());
        network[{at, send->to}].push_back({send->phase, send->meeting, model_sent});
      } else if (const auto* average = std::get_if<PairEngine::Average>(&action)) {
        for (const Rank rank : {average->meeting.low(), average->meeting.high()})
          if (node(rank) == at) mark_busy(rank);
        running.push_back({at, average->meeting, {}});
      } else {
        const Rank rank = std::get<PairEngine::Step>(action).initiator;
        mark_busy(rank);
        running.push_back({at, {}, rank});
      }
    }
  }

  void receive(NodeId at, const Message& message) {
    if (message.phase == Sent::offer) {
      EXPECT_EQ(model(message.meeting.low()), message.model) << "a model was changed while it was lent";
    }
    if (message.phase == Sent::mean) {
      const Rank low = message.meeting.low();
      EXPECT_EQ(model(low), lent_[low]) << "a model was changed while it was lent";
      model(low) = message.model;
    }
    act(at, engines.at(at).on_message(message.phase, message.meeting));
  }

  void finish(const Running& done) {
    auto& engine = engines.at(done.node);
    if (!done.averages) {
      busy.erase(done.steps);
      model(done.steps) += step;
      stepped.push_back(done.steps);
      return act(done.node, engine.on_stepped(done.steps));
    }
    const Rank low = done.averages->low(), high = done.averages->high();
    busy.erase(low);
    busy.erase(high);
    const double mean = (model(low) + model(high)) / 2;
    model(high) = mean;
    if (node(low) == done.node) model(low) = mean;
    ++averages;
    act(done.node, engine.on_averaged(*done.averages));
  }

  std::vector<NodeId> node_of_;
  std::map<Rank, double> lent_;
};

std::vector<Sent> phases(const std::deque<PairAgents::Message>& messages) {
  std::vector<Sent> all;
  for (const auto& message : messages) all.push_back(message.phase);
  return all;
}

TEST(PairEngineTest, BothModelsBecomeTheirMeanAndTheStepIsAddedAfterwards) {
  PairAgents sut({0, 0});
  sut.begin_all();
  sut.step = 3;
  sut.arrive(1, 0);
  sut.everything();
  EXPECT_THAT(sut.models, ElementsAre(32, 35));
  EXPECT_THAT(sut.stepped, ElementsAre(Rank{1}));
}

TEST(PairEngineTest, AWorkerThatMeetsNobodyStepsAlone) {
  PairAgents sut({0, 0});
  sut.begin_all();
  sut.step = 3;
  sut.arrive(0, {});
  sut.everything();
  EXPECT_THAT(sut.models, ElementsAre(3, 64));
}

TEST(PairEngineTest, TheLowerModelTravelsAndIsLockedMeanwhile) {
  PairAgents sut({0, 1});
  sut.begin_all();
  sut.arrive(0, 1);
  const auto& sent = sut.network[{NodeId{0}, NodeId{1}}];
  EXPECT_THAT(phases(sent), ElementsAre(Sent::offer));
  EXPECT_THAT(sut.running, IsEmpty());
  sut.everything();
  EXPECT_THAT(sut.models, ElementsAre(32, 32));
}

TEST(PairEngineTest, AHigherInitiatorAsksForTheLowerModel) {
  PairAgents sut({0, 1});
  sut.begin_all();
  sut.step = 3;
  sut.arrive(1, 0);
  EXPECT_THAT(phases(sut.network[{NodeId{1}, NodeId{0}}]), ElementsAre(Sent::ask));
  sut.everything();
  EXPECT_THAT(sut.models, ElementsAre(32, 35));
}

TEST(PairEngineTest, MeetingsOfOneModelComeOneByOneInTheOrderInWhichTheyAskedForIt) {
  PairAgents sut({0, 0, 0});
  sut.begin_all();
  sut.arrive(2, 0);
  sut.arrive(1, 0);
  EXPECT_EQ(sut.running.size(), 1U);
  sut.everything();
  EXPECT_THAT(sut.stepped, ElementsAre(Rank{2}, Rank{1}));
  EXPECT_THAT(sut.models, ElementsAre(64, 64, 64));
}

TEST(PairEngineTest, APartnerThatIsGoneIsNotMet) {
  for (const auto& node_of : {std::vector<std::int32_t>{0, 0}, {0, 1}}) {
    for (const std::int32_t dead : {0, 1}) {
      PairAgents sut(node_of);
      sut.begin_all();
      sut.step = 3;
      sut.gone(dead);
      sut.arrive(1 - dead, dead);
      sut.everything();
      EXPECT_EQ(sut.averages, 0);
      EXPECT_THAT(sut.stepped, ElementsAre(Rank{1 - dead}));
    }
  }
}

TEST(PairEngineTest, AWorkerThatDiesWithItsModelLentLeavesNobodyWaiting) {
  PairAgents sut({0, 1, 0});
  sut.begin_all();
  sut.arrive(1, 0);  // Asks for 0's model.
  sut.something(0);  // It is lent.
  sut.arrive(2, 0);  // Waits for it.
  sut.gone(0);
  sut.everything();
  EXPECT_EQ(sut.averages, 1) << "what was begun is finished, what was not is done without it";
  EXPECT_THAT(sut.stepped, testing::UnorderedElementsAre(Rank{1}, Rank{2}));
  for (const auto& [node, engine] : sut.engines) EXPECT_TRUE(engine.idle());
}

TEST(PairEngineTest, APartnerThatHasNotBegunIsWaitedForUntilItBeginsOrIsGone) {
  PairAgents sut({0, 0});
  sut.begin(0);
  sut.arrive(0, 1);
  sut.everything();
  EXPECT_THAT(sut.stepped, IsEmpty());
  EXPECT_THAT(sut.engines.at(NodeId{0}).awaited(), ElementsAre(Rank{1}));
  PairAgents other = sut;
  sut.begin(1);
  sut.everything();
  EXPECT_EQ(sut.averages, 1);
  other.gone(1);
  other.everything();
  EXPECT_EQ(other.averages, 0);
  EXPECT_THAT(other.stepped, ElementsAre(Rank{0}));
}

TEST(PairEngineTest, WhoIsGoneIsFreeWhenNothingIsUnderWayWithItsModelAndMayBegin) {
  for (const auto& node_of : {std::vector<std::int32_t>{0, 0}, {0, 1}}) {
    for (const std::int32_t initiator : {0, 1}) {
      for (const std::int32_t dead : {0, 1}) {
        PairAgents sut(node_of);
        sut.begin_all();
        sut.arrive(initiator, 1 - initiator);
        sut.gone(dead);
        if (initiator == dead) {
          EXPECT_FALSE(sut.is_free(dead)) << "its own meeting";
        }
        sut.everything();
        EXPECT_TRUE(sut.is_free(dead));
        const auto before = sut.averages;
        sut.begin(dead);
        sut.arrive(1 - dead, dead);
        sut.everything();
        EXPECT_EQ(sut.averages, before + 1) << "it is met";
        EXPECT_TRUE(sut.engines.at(NodeId{0}).idle());
      }
    }
  }
}

TEST(PairEngineTest, WhoWaitsForAnothersModelIsNotFree) {
  PairAgents sut({0, 0, 0});
  sut.begin_all();
  sut.arrive(1, 0);
  sut.arrive(2, 0);
  sut.gone(2);
  EXPECT_FALSE(sut.is_free(2));
  sut.everything();
  EXPECT_TRUE(sut.is_free(2));
}

TEST(PairEngineTest, MessagesAboutNothingAreIgnored) {
  PairEngine sut({.self = NodeId{0}, .node_of = {NodeId{0}, NodeId{1}}});
  sut.on_begun(Rank{0});
  const Meeting own{Rank{0}, Rank{1}}, unknown{Rank{7}, Rank{0}}, self{Rank{0}, Rank{0}};
  for (const Sent phase : {Sent::ask, Sent::offer, Sent::mean, Sent::decline})
    for (const Meeting& meeting : {own, unknown, self}) EXPECT_THAT(sut.on_message(phase, meeting), IsEmpty());
  EXPECT_TRUE(sut.idle());
}

TEST(PairEngineTest, WhoMeetsAWorkerOfALostAgentGoesOnAlone) {
  for (const bool initiator_is_low : {true, false}) {
    for (int until = 0; until < 5; ++until) {
      PairAgents sut(initiator_is_low ? std::vector<std::int32_t>{0, 1} : std::vector<std::int32_t>{1, 0});
      sut.begin_all();
      const std::int32_t own = initiator_is_low ? 0 : 1, other = 1 - own;
      sut.arrive(own, other);
      for (int i = 0; i < until; ++i) sut.something(0);
      sut.lose(NodeId{1});
      sut.everything();
      EXPECT_THAT(sut.stepped, ElementsAre(Rank{own})) << until;
      EXPECT_TRUE(sut.engines.at(NodeId{0}).idle()) << until;
      sut.arrive(own, other);
      sut.everything();
      EXPECT_THAT(sut.stepped, ElementsAre(Rank{own}, Rank{own})) << "later, too";
    }
  }
}

TEST(PairEngineTest, WhatWasLentToALostAgentComesBackAsItWas) {
  PairAgents sut({0, 1, 0});
  sut.begin_all();
  sut.arrive(1, 0);  // Asks for 0's model.
  sut.something(0);  // It is lent.
  sut.arrive(2, 0);  // Waits for it.
  sut.lose(NodeId{1});
  sut.everything();
  EXPECT_THAT(sut.stepped, ElementsAre(Rank{2}));
  EXPECT_EQ(sut.models[0], 64) << "the mean of its own and worker 2's";
  EXPECT_TRUE(sut.engines.at(NodeId{0}).idle());
}

/// Random meetings on random agents, with everything that takes time in random order, deaths, returns, and lost agents.
class PairEngineRuns : public testing::TestWithParam<std::uint32_t> {};

TEST_P(PairEngineRuns, EverybodyFinishesAndAveragingsKeepTheSum) {
  std::mt19937 random(GetParam());
  const auto below = [&](std::size_t n) { return static_cast<std::int32_t>(random() % n); };
  const std::size_t workers = 2 + random() % 7;
  const std::size_t nodes = 1 + random() % 4;
  std::vector<std::int32_t> node_of;
  for (std::size_t i = 0; i < workers; ++i) node_of.push_back(below(nodes));
  PairAgents sut(node_of);
  const bool deaths = GetParam() % 2 == 1, losses = GetParam() % 3 == 1, returns = GetParam() % 4 == 1;
  const double sum = sut.sum();
  std::vector<int> left(workers, 6);
  std::set<std::int32_t> begun, dead, waits;
  std::size_t seen = 0;
  for (int idle = 0; idle < 200;) {
    for (; seen < sut.stepped.size(); ++seen) waits.erase(sut.stepped[seen].value);
    const std::int32_t rank = below(workers);
    const auto at = static_cast<std::size_t>(rank);
    const bool lives = !dead.contains(rank);
    if (random() % 2 == 0 && sut.something(random())) {
      idle = 0;
    } else if (lives && deaths && random() % 50 == 0) {
      dead.insert(rank);
      sut.gone(rank);
    } else if (!lives && returns && sut.engines.contains(sut.node(Rank{rank})) && sut.is_free(rank)) {
      dead.erase(rank);
      waits.erase(rank);
      begun.insert(rank);
      sut.begin(rank);
    } else if (losses && sut.engines.size() > 1 && random() % 100 == 0) {
      const NodeId lost = sut.node(Rank{rank});
      if (!sut.engines.contains(lost)) continue;
      sut.lose(lost);
      for (std::size_t i = 0; i < workers; ++i)
        if (node_of[i] == lost.value) {
          dead.insert(static_cast<std::int32_t>(i));
          waits.erase(static_cast<std::int32_t>(i));
        }
    } else if (lives && begun.insert(rank).second) {
      sut.begin(rank);
    } else if (lives && left[at] > 0 && waits.insert(rank).second) {
      --left[at];
      const std::int32_t other = below(workers);
      sut.arrive(rank, other == rank ? std::nullopt : std::optional(other));
    } else {
      ++idle;
    }
  }
  sut.everything();
  for (; seen < sut.stepped.size(); ++seen) waits.erase(sut.stepped[seen].value);
  EXPECT_THAT(waits, IsEmpty()) << "somebody waits for ever";
  for (const std::int32_t rank : begun)
    EXPECT_TRUE(dead.contains(rank) || left[static_cast<std::size_t>(rank)] == 0) << "worker " << rank;
  for (const auto& [node, engine] : sut.engines) EXPECT_TRUE(engine.idle());
  if (!losses) {
    EXPECT_NEAR(sut.sum(), sum, 1e-9 * sum);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PairEngineRuns, testing::Range(0U, 400U));

}  // namespace
}  // namespace paceline::scheduler
